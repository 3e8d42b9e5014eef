"""Galleries in PostgreSQL: what their server, their address and their users bring, beside what all galleries have in common."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
import traceback

import numpy as np
import pytest

from gallery_stores import content, pieces, query
from simtree import DistanceSimilarity, Gallery, MarginalQuantiles
from simtree.gallery import GalleryError
from simtree.gallery._address import PostgresAddress, parse_address, shown
from tiny_models import fitted, people

X, Y = people(40, n=10, n_samples=2)
SECRET = "s3cr3t/with@odd:signs"
NUMBERS = itertools.count()


@pytest.fixture
def server(postgres_server):
    return postgres_server


@pytest.fixture
def address(server):
    return server.address(f"own_{next(NUMBERS)}")


@pytest.fixture
def gallery(address):
    with Gallery.create(address, fitted("gaussian")) as made:
        made.enroll(Y, X, metadata={"site": ["A"] * 20})
        yield made


@pytest.fixture
def role(server):
    """A user who needs a password, and may do nothing yet."""
    with server.connected() as admin:
        admin.execute(f"CREATE ROLE locked LOGIN PASSWORD '{SECRET}'")
        yield admin
        admin.execute("DROP OWNED BY locked")
        admin.execute("DROP ROLE locked")


@pytest.mark.parametrize(
    ("text", "parameters", "name"),
    [
        ("postgresql://localhost/people", {"host": "localhost", "dbname": "people"}, "localhost/people?schema=simtree"),
        ("postgres://h:5433/d?schema=a_1", {"host": "h", "port": "5433", "dbname": "d"}, "h:5433/d?schema=a_1"),
        (
            "postgresql://u:p%40ss@%2Frun%2Fpg/d?sslmode=require",
            {"user": "u", "password": "p@ss", "host": "/run/pg", "dbname": "d", "sslmode": "require"},
            "u@%2Frun%2Fpg/d?schema=simtree",
        ),
        (
            "postgresql://u:a@b/c:d@h/d",
            {"user": "u", "password": "a@b/c:d", "host": "h", "dbname": "d"},
            "u@h/d?schema=simtree",
        ),
        ("postgresql://h1:1,h2:2/d", {"host": "h1,h2", "port": "1,2", "dbname": "d"}, "h1:1,h2:2/d?schema=simtree"),
        ("postgresql://[::1]:5/d", {"host": "::1", "port": "5", "dbname": "d"}, "[::1]:5/d?schema=simtree"),
        ("postgresql:///d?host=/tmp&password=x", {"dbname": "d", "host": "/tmp", "password": "x"}, "%2Ftmp/d?schema=simtree"),
        ("postgresql://", {}, "/?schema=simtree"),
    ],
)
def test_addresses(text, parameters, name):
    address = parse_address(text)
    assert address.parameters == parameters
    assert shown(text) == str(address) == f"postgresql://{name}"
    assert PostgresAddress.parse(str(address)).schema == address.schema
    assert "p@ss" not in repr(address)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://u:p?q@h/d", r"the address postgresql://... cannot be read; write it as postgresql://user@host:port"),
        ("postgresql://h:5x/d", r"the address postgresql://\.\.\. cannot be read"),
        ("postgresql://h/d?schema=A", "schema='A' of the address is not usable; give at most 63 lower-case letters"),
        ("postgresql://h/d?schema=pg_catalog", "schema='pg_catalog' of the address is not usable"),
        ("postgresql:/h/d", "given as a path, which turns // into /; give it as a string"),
    ],
)
def test_addresses_that_cannot_be_used(text, said):
    with pytest.raises(ValueError, match=said) as caught:
        Gallery.open(text)
    assert "q@h" not in str(caught.value)


def test_without_the_driver_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for call in (Gallery.open, lambda address: Gallery.create(address, fitted("gaussian"))):
        with pytest.raises(ImportError, match=r'needs psycopg; install it with: pip install "simtree\[postgres\]"'):
            call("postgresql://localhost/people")


def test_a_password_is_never_shown(server, role, gallery):
    schema = gallery._session.store._address.schema
    role.execute(f"GRANT USAGE ON SCHEMA {schema} TO locked; GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO locked")
    with Gallery.open(server.address(schema, user=f"locked:{SECRET}")) as opened:
        opened.enroll(["x"], X[:1])
        texts = [repr(opened), str(opened.path), str(opened.to_dict()), str(opened.audit()), str(content(opened))]
        texts += [repr(opened._session.store.__dict__["_address"])]
        assert f"{opened.path}" == server.address(schema, user="locked")
    for user in (f"locked:{SECRET}wrong", f"nobody:{SECRET}"):
        with pytest.raises(ConnectionError, match=r"schema=.* cannot be reached \(.*\); check the address, the user") as caught:
            Gallery.open(server.address(schema, user=user))
        assert "\n" not in str(caught.value)
        texts += traceback.format_exception(caught.value)
    assert not [text for text in texts if SECRET in text or SECRET.partition("@")[0] in text]


def test_places_where_no_gallery_is(server, address, gallery):
    with pytest.raises(ConnectionError, match=r"cannot be reached \(connection .* failed: No such file"):
        Gallery.open("postgresql://%2Fnowhere/d")
    with pytest.raises(ConnectionError, match=r'database "nothing" does not exist'):
        Gallery.open(server.address("simtree", database="nothing"))
    with pytest.raises(FileNotFoundError, match=r"there is no gallery .*schema=nothing; make it with Gallery\.create"):
        Gallery.open(server.address("nothing"))
    with server.connected() as admin:
        admin.execute("CREATE SCHEMA foreign_one CREATE TABLE setting (name TEXT)")
        admin.execute("CREATE SCHEMA empty_one")
    with pytest.raises(GalleryError, match=r"schema=foreign_one is not a gallery of simtree; give another one"):
        Gallery.open(server.address("foreign_one"))
    with pytest.raises(FileExistsError, match=r"schema=foreign_one exists; choose another schema, or drop it first"):
        Gallery.create(server.address("foreign_one"), fitted("gaussian"))
    Gallery.create(server.address("empty_one"), fitted("gaussian")).close()  # made by who may, for who may not
    with server.connected() as admin:
        admin.execute(f"DROP TABLE {gallery._session.store._address.schema}.vectors")
    with pytest.raises(GalleryError, match=r'is damaged: relation "vectors" does not exist; restore a backup'):
        gallery.remove("0")
    assert "0" in gallery


def test_a_database_must_hold_every_text(server):
    with server.connected("postgres") as admin:
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(GalleryError, match="has the encoding LATIN1; give one with the encoding UTF8"):
        Gallery.create(server.address("simtree", database="latin"), fitted("gaussian"))


def test_long_and_odd_values(address):
    rng = np.random.default_rng(0)
    ids = ["".join(chr(0x1F300 + k) for k in rng.integers(0, 500, 1000)), "ß" * 1000, "%s $1 ? \\ {}"]
    long = ["y" * 50_000, "y" * 50_000 + "z", "a\0b"]
    with Gallery.create(address, fitted("gaussian")) as gallery:
        gallery.enroll(ids, X[:3], metadata={"%s ?": long})
        assert gallery.ids() == ids
        for name, value in zip(ids, long, strict=True):
            assert gallery.identify(X[:1], where={"%s ?": value}).id.tolist() == [name]
        assert gallery.verify(ids, X[:3]).id.tolist() == ids


def test_a_gallery_moves_to_postgresql_and_back(address, tmp_path):
    """Whoever outgrows a file, or wants one again."""
    with Gallery.create(tmp_path / "a.gallery", fitted("gaussian"), max_samples=3) as file:
        file.enroll(Y, X, metadata={"site": ["A"] * 20, "n": np.arange(20) // 2})
        file.remove("3")
        strangers, who = people(41, n=60, n_samples=1)
        file.calibrate(strangers, [f"stranger {k}" for k in who])
        file.backup(address)
        with Gallery.open(address) as moved:
            assert content(moved) == content(file)
            for some in (file, moved):
                some.enroll(["new"], X[:1])
                assert some.ids()[-1] == "new"
            assert moved.audit("2").action.tolist() == ["enroll"]
            moved.backup(tmp_path / "b.gallery")
            with Gallery.open(tmp_path / "b.gallery") as back:
                assert content(back) == content(moved)
                back.enroll(["newer"], X[:1])
            with pytest.raises(FileExistsError):
                file.backup(address)
            assert Gallery.upgrade(address) is None


def test_a_reader_does_not_wait_for_a_writer(gallery, address):
    with Gallery.open(address, readonly=True, timeout=0.05) as reader:
        with gallery._session.store.writing() as connection:
            connection.execute("DELETE FROM block")
            assert reader.identify(X[:1], k=1).id[0] == "0"
            assert query(reader, "SHOW transaction_read_only") == [("on",)]
            gallery._session.store._rollback()
            gallery._session.store._begin(writes=True)
        assert reader.identify(X[:1], k=1).id[0] == "0"


def test_a_commit_waits_for_the_disk_whatever_the_server_is_set_up_for(server, gallery):
    with server.connected() as admin:
        assert admin.execute("SHOW synchronous_commit").fetchone() == ("off",)
    with gallery._session.store.writing() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.slow
def test_what_was_confirmed_survives_a_crash_of_the_server(server, gallery, address):
    with Gallery.create(server.address("crashed"), fitted("gaussian")) as another:
        another.enroll(["last"], X[:1])
        server.crash()
        assert another.ids() == ["last"]  # by a new connection
    gallery.enroll(["new"], X[:1])
    server.crash()
    assert "new" in gallery
    assert len(gallery.identify(X[:1], k=100)) == 11


def test_a_lost_connection_is_replaced(server, gallery, monkeypatch):
    def lose(*_):
        number = gallery._session.store._connection.info.backend_pid
        with server.connected() as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 60000)", [number])

    lose()
    assert gallery.identify(X[:1], k=1).id[0] == "0"
    before = content(gallery)
    monkeypatch.setattr("simtree.gallery._enrolment.merge_blocks", lose)
    with pytest.raises(ConnectionError, match=r"cannot be reached \(.*\); check the address"):
        gallery.enroll(["x"], X[:1])
    assert content(gallery) == before


def test_a_commit_that_gets_no_answer_says_so(server, gallery, monkeypatch):
    store = gallery._session.store
    raw, number = store._connection, store._connection.info.backend_pid
    execute = raw.execute

    def execute_or_lose(statement, *rest, **options):
        if statement == "COMMIT":
            with server.connected() as admin:
                admin.execute("SELECT pg_terminate_backend(%s, 60000)", [number])
        return execute(statement, *rest, **options)

    with (
        pytest.raises(ConnectionError, match="was lost while a change was being committed; look whether it is there"),
        store.writing(),
    ):
        monkeypatch.setattr(raw, "execute", execute_or_lose)
    assert len(gallery) == 10


def test_a_failed_statement_is_never_confirmed(gallery):
    before = content(gallery)
    with pytest.raises(GalleryError, match=r"was not changed|cannot be used"):
        _fail_silently(gallery)
    store = gallery._session.store
    store._begin(writes=False)
    with contextlib.suppress(Exception):
        store._connection.execute("SELECT 1 / 0")
    with pytest.raises(GalleryError, match="was not changed, because a statement has failed"):
        store._commit(writes=False)
    assert content(gallery) == before


def _fail_silently(gallery):
    with gallery._session.store.writing() as connection:
        connection.execute("DELETE FROM identity")
        with contextlib.suppress(Exception):
            connection.execute("SELECT 1 / 0")


def test_users_may_do_what_they_have_been_granted(server, role, gallery):
    schema = gallery._session.store._address.schema
    address = server.address(schema, user=f"locked:{SECRET}")
    with pytest.raises(PermissionError, match=r"cannot be read or written to by this user \(permission denied"):
        Gallery.open(address)
    with pytest.raises(PermissionError, match=r"permission denied for database"):
        Gallery.create(server.address("mine", user=f"locked:{SECRET}"), fitted("gaussian"))
    role.execute(f"GRANT USAGE ON SCHEMA {schema} TO locked; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO locked")
    with Gallery.open(address, readonly=True) as reader:
        assert reader.identify(X[:1], k=1).id[0] == "0"
    before = content(gallery)
    with (
        Gallery.open(address) as reader,
        pytest.raises(
            PermissionError, match=r"\(permission denied for table gallery\); ask for the privileges, or open it with"
        ),
    ):
        reader.enroll(["x"], X[:1])
    assert content(gallery) == before
    role.execute(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO locked")
    with Gallery.open(address) as writer:
        writer.enroll(["x"], X[:1])
        writer.remove("1")
        with pytest.raises(PermissionError, match="can be compacted only by the owner of its tables"):
            writer.compact()
        assert writer.to_dict()["n_samples_not_erased"] == 2


def test_a_server_that_does_not_keep_what_it_confirms_is_named(server, gallery, address):
    with server.connected() as admin:
        for value in ("off", "on"):
            admin.execute(f"ALTER SYSTEM SET fsync = {value}")
            admin.execute("SELECT pg_reload_conf()")
            while admin.execute("SHOW fsync").fetchone() != (value,):
                time.sleep(0.01)
            if value == "off":
                with pytest.warns(UserWarning, match="runs with fsync=off: it may lose what it has confirmed"):
                    Gallery.open(address).close()
            Gallery.open(address, readonly=value == "off").close()


# Erasure.

N_FEATURES, NAME, SITE = 40, "the person who wants to be forgotten", "a place that nobody else has"


def data(n, seed):
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES))


@pytest.fixture
def forgetful(server):
    """A gallery in a database of its own, and a function that returns what the files of that database hold."""
    database = f"erasure_{next(NUMBERS)}"
    with server.connected("postgres") as admin:
        admin.execute(f"CREATE DATABASE {database}")

    def written():
        with server.connected(database) as admin:
            admin.execute("CHECKPOINT")  # what is in memory goes to the files
            number = admin.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()[0]
        files = sorted(server.data.glob(f"base/{number}/*")) + sorted(server.data.glob("base/pgsql_tmp/*"))
        return b"\0".join(file.read_bytes() for file in files)

    model = DistanceSimilarity(metric="euclidean", representation=MarginalQuantiles(n_quantiles=20, output="normal"))
    model.fit(data(60, seed=9), np.repeat(np.arange(20), 3))
    with Gallery.create(server.address("simtree", database=database), model) as gallery:
        yield gallery, written, lambda: server.connected(database)


@pytest.mark.slow
def test_nothing_is_left_of_a_person(forgetful):
    gallery, written, connected = forgetful
    forgotten = data(2, seed=7777)
    traces = pieces(forgotten) | pieces(gallery.model._prepare(forgotten)) | {NAME.encode(), SITE.encode()}
    gallery.enroll([NAME], forgotten[:1], metadata={"site": SITE})
    for number in range(9):
        gallery.enroll([f"{number}-{k}" for k in range(40)], data(40, seed=number), metadata={"site": "here"})
    gallery.enroll([NAME], forgotten[1:])
    with connected() as admin:
        admin.execute("ANALYZE")  # the statistics of a table may hold some of its values
    before = written()
    assert sum(piece in before for piece in traces) > 0.9 * len(traces)
    ((key,),) = query(gallery, "SELECT audit_key FROM identity WHERE id = ?", NAME)
    gallery.remove(NAME)
    gallery.compact()
    after = written()
    assert not [piece for piece in {*traces, key} if piece in after]
    assert gallery.to_dict()["n_samples_not_erased"] == 0
    assert len(gallery) == 360
    assert [piece for piece in pieces(data(3, seed=8)) if piece in after]  # those who stay are there


def test_who_can_still_see_a_person_delays_erasure(forgetful):
    gallery, written, connected = forgetful
    forgotten = data(1, seed=7)
    gallery.enroll([NAME, "other"], np.vstack([forgotten, data(1, seed=8)]))
    said = r"not yet erased: what was removed may still be in postgresql://.*; compact it again, or with a larger timeout"
    for statement in (
        "SELECT count(*) FROM simtree.block",
        "SELECT 1 FROM pg_class",
    ):  # with a lock, and with a view of it only
        with connected() as reader:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute(statement)
            if NAME in gallery:
                gallery.remove(NAME)
            with pytest.raises(TimeoutError, match=said):
                gallery.compact(timeout=0.1)
            assert [piece for piece in pieces(forgotten) if piece in written()]  # as it says
            assert gallery.to_dict()["n_samples_not_erased"] == 1
            reader.execute("COMMIT")
        if statement.endswith("block"):
            gallery.compact()
            assert not [piece for piece in pieces(forgotten) if piece in written()]
            gallery.enroll([NAME], forgotten)
    gallery.compact()
    assert not [piece for piece in pieces(forgotten) if piece in written()]
    assert len(gallery.identify(data(1, seed=3))) == 1
