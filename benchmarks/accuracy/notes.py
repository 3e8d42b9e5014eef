"""What people have to say of each data set on the page: what was tried, and what is believed to be missing.

Plain Markdown, one entry a data set; an empty one says nothing. Figures belong into the JSON, not here.
"""

NOTES: dict[str, str] = {
    "mnist": "",
    "keystroke": "",
    "audio": "",
    "lfw": "",
    "uci": "",
}
