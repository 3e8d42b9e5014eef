"""What people have to say of each data set on the page: what was tried, and what is believed to be missing.

Plain Markdown, one entry a data set; an empty one says nothing. Figures belong into the JSON, not here.
"""

NOTES: dict[str, str] = {
    "mnist": """Tried on the last 10,000 training images: 2,000 to 6,000 landmarks, penalties and widths of the kernel,
forests of fewer trees on more pairs each (better than more trees on fewer), a refilled forest, and a vote with the cosine
of the class scores, which is better at the lowest FPR only. More landmarks gain still, and take time that grows with their
square. LightGBM falls at an FPR of 0.0001: leaves with few pairs and extreme values put some hundred pairs on top, of which
about as many are different as same. Test images are the same in all splits, so spreads are those of pairs and seeds only.""",
    "keystroke": """Tried on the training people: cosines of whitened quantiles with and without landmarks, forests on
features as given, on quantiles and on whitened quantiles, refilled forests, the likelihood ratio, and votes of two to five
of these. Which single one is best changes from one group of people to the next: quantiles help most people, but bound what
nobody in training has typed, and where such people are met only the forest on features as given knows it. Their vote is
better than each on every group. The vote of two forests was reported first; the likelihood ratio was made later, for
speakers, and the vote with it was again chosen on the training people. The default shrinkage of `WithinClassWhitening`,
which the second forest uses, was picked at an earlier time while looking at test people of splits 0 and 1; compared again
on the training people alone, 0.03, 0.1 and 0.3 differ less than groups of people do, and 0.1 was kept.""",
    "audio": """A first vote of three forests and a cosine, chosen with 24 speakers to learn from, was behind the quadratic
ratio at an FPR of 0.01 when it was run on splits 1 to 3 with 36: ratios gain more from further speakers than forests do. So
`GaussianSimilarity` was made (it has one covariance within and one between speakers, where the quadratic ratio has four
free ones), and all was chosen anew on the training speakers of split 0, in three and in six folds (24 and 30 speakers to
learn from). There, alone, it is best in AUC and at an FPR of 0.1; forests beside it gain at 0.001 and below. Tried besides:
landmarks before it, random subsets of speakers or features, points of one length, forests along discriminant directions.
Believed to be missing are speakers (with 12 more of them, AUCs rise by about 0.01), and features that do not mix who speaks
with which digit is spoken.""",
    "lfw": """Tried on the training people: more and less whitening, forests on features as given and whitened, with same
pairs uniform over pairs and over people, with more pairs and fewer trees, a likelihood ratio, Euclidean distance as a
further member. Same pairs uniform over people (`same_weighting`) gain most at the lowest FPRs and lose a little at 0.01;
whitened points make up for it. Descriptors were trained on other faces than these to be compared by distance: at an FPR of
0.1 nothing is left to gain, and what is lost or won there is a few of 30,000 same pairs.""",
    "uci": """The vote of two representations was chosen on the training sides of the first folds. Pair classifiers see f of
100,000 pairs; ours sees the classes too, which is what gains: with classes known, how likely each is for a point says all
there is to say of a pair.""",
}
