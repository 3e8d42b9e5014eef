"""What the routes answer, and that it is what the gallery says."""

from __future__ import annotations

import copy
import json
import math
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

from running_service import make_gallery, people
from simtree import Gallery, SimilarityTree
from simtree.service import _schemas as service_schemas
from simtree.service._access import OPEN, ROUTES
from simtree.service._client import _cells
from simtree.service._served import number

pytestmark = pytest.mark.slow


@pytest.fixture
def api(started, folder):
    with started(folder) as found:
        yield found


def post(api, path, body, **headers):
    return api.http.post(path, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def enrol(api, id, samples, name, **options):
    return post(api, f"/v1/subjects/{id}/samples", {"samples": np.asarray(samples).tolist(), **options}, Idempotency_Key=name)


def test_answers_are_those_of_the_gallery(api, folder, prepared):
    with Gallery.open(folder / "people.gallery", readonly=True) as gallery:
        expected = gallery.identify(prepared.queries[:3], k=4, max_fpir=0.05, keep_below=True)
        claims = gallery.verify(["p00", "p01"], prepared.queries[[0, 0]])
        explained = gallery.explain("p00", prepared.queries[0])
    answer = post(api, "/v1/identify", {"samples": prepared.queries[:3].tolist(), "k": 4}).json()
    found = [candidate for result in answer["results"] for candidate in result["candidates"]]
    assert [candidate["id"] for candidate in found] == expected.id.tolist()
    np.testing.assert_array_equal([candidate["score"] for candidate in found], expected.score)
    told = [candidate["probability"] for candidate in found]
    assert told == [number(probability) for probability in expected.probability]
    assert told[0] > 0.9
    assert None in told
    np.testing.assert_array_equal([candidate["expected_false_matches"] for candidate in found], expected.expected_false_matches)
    assert [result["candidates"][0]["id"] for result in answer["results"]] == ["p00", "p01", "p02"]
    assert answer["threshold"] == expected.threshold
    assert [candidate["decision"] == "candidate" for candidate in found] == (expected.score >= expected.threshold).tolist()
    assert answer["expected_fpir"] == expected.expected_fpir
    assert answer["promise"] == expected.promise
    assert (answer["n_identities"], answer["n_searched"], answer["fingerprint"]) == (20, 20, expected.fingerprint)

    answer = post(
        api, "/v1/verify", {"claims": [{"id": f"p0{k}", "sample": prepared.queries[0].tolist()} for k in range(2)]}
    ).json()
    assert [result["score"] for result in answer["results"]] == claims.score.tolist()
    assert [result["threshold"] for result in answer["results"]] == claims.threshold.tolist()
    assert [result["decision"] for result in answer["results"]] == ["accepted", "rejected"]
    assert [result["probability"] for result in answer["results"]] == [number(one) for one in claims.probability]
    assert answer["expected_fpir"] == claims.expected_fpir

    answer = post(api, "/v1/explain", {"id": "p00", "sample": prepared.queries[0].tolist()}).json()
    assert answer["score"] == answer["explained_score"] == explained.score
    assert (answer["decision"], answer["threshold"]) == ("accepted", claims.threshold[0])
    assert answer["expected_fpir"] == claims.expected_fpir
    total = answer["base"] + answer["others"] + sum(entry["contribution"] for entry in answer["contributions"])
    assert total == pytest.approx(explained.score)
    own = dict(zip(explained.feature_names, prepared.queries[0].tolist(), strict=True))
    assert {entry["feature"]: entry["value"] for entry in answer["contributions"]} == own
    enrolled = {round(float(value), 9) for value in explained.x2}
    told = json.dumps(answer)
    assert not any(str(value)[:8] in told for value in enrolled)  # the enrolled sample is not in the answer


def test_an_explanation_carries_the_decision_of_all_enrolled_samples(started, folder, forest):
    """One sample of an identity matches, and the mean over its samples does not."""
    (folder / "people.gallery").unlink()
    X, _ = people(20, 3, 1)
    with Gallery.create(folder / "people.gallery", forest, fusion="mean") as gallery:
        gallery.enroll(["ann", "ann", "ann"], X[[0, 30, 45]])
    with started(folder) as api:
        verified = post(api, "/v1/verify", {"claims": [{"id": "ann", "sample": X[1].tolist()}]}).json()
        answer = post(api, "/v1/explain", {"id": "ann", "sample": X[1].tolist()}).json()
    assert verified["results"][0] == {"probability": None} | {
        name: answer[name] for name in ("id", "score", "threshold", "decision")
    }
    assert answer["decision"] == "rejected"
    assert answer["score"] < answer["threshold"] < answer["explained_score"]


def test_a_threshold_for_other_scores_decides_about_no_explanation(started, folder, forest):
    (folder / "people.gallery").unlink()
    X, y = people(60, 3, 1)
    fused = copy.deepcopy(forest)
    fused.calibrate_threshold(X, y, confidence=None, enrol=np.arange(len(y)) % 3 < 2, fusion="mean")
    with Gallery.create(folder / "people.gallery", fused) as gallery:
        gallery.enroll(["ann"], X[:1])
    with started(folder) as api:
        assert post(api, "/v1/verify", {"claims": [{"id": "ann", "sample": X[1].tolist()}]}).status_code == 422
        answer = post(api, "/v1/explain", {"id": "ann", "sample": X[1].tolist()}).json()
    assert (answer["decision"], answer["threshold"], answer["score"]) == ("undecided", None, None)
    assert answer["explained_score"] == pytest.approx(answer["base"] + sum(e["contribution"] for e in answer["contributions"]))


def test_filters_and_rates(api, prepared):
    answer = post(api, "/v1/identify", {"samples": prepared.queries[:1].tolist(), "where": {"site": ["B"]}}).json()
    assert answer["n_searched"] == 10
    assert answer["results"][0]["decision"] == "unknown"
    refused = post(api, "/v1/identify", {"samples": prepared.queries[:1].tolist(), "max_fpir": 0.001})
    assert refused.status_code == 422
    assert "identities that are not enrolled" in refused.json()["detail"]
    refused = post(api, "/v1/identify", {"samples": prepared.queries[:1].tolist(), "where": {"color": "red"}})
    assert (refused.status_code, "metadata" in refused.json()["detail"]) == (422, True)


def test_without_a_calibration_nothing_is_decided(started, folder, forest, prepared):
    (folder / "people.gallery").unlink()
    make_gallery(folder / "people.gallery", forest, is_calibrated=False)
    with started(folder) as api:
        answer = post(api, "/v1/identify", {"samples": prepared.queries[:1].tolist()}).json()
    assert answer["results"][0]["decision"] == "undecided"
    assert {candidate["decision"] for candidate in answer["results"][0]["candidates"]} == {"undecided"}
    assert (answer["threshold"], answer["expected_fpir"]) == (None, None)
    assert answer["promise"].startswith("no decision: the gallery is not calibrated")


def test_a_gallery_that_outgrew_its_calibration_decides_nothing_unless_asked(api, prepared):
    new = prepared.queries[0] + np.arange(30)[:, None]
    for k in range(30):
        assert enrol(api, f"new{k}", new[[k]], f"n{k}").status_code == 201
    answer = post(api, "/v1/identify", {"samples": prepared.queries[:1].tolist()}).json()
    assert answer["results"][0]["decision"] == "undecided"
    assert "grew" in answer["promise"]


def test_enrol_retry_and_remove(api, prepared):
    sample = prepared.queries[[0]] + 50.0
    first, again = (enrol(api, "ann", sample, "one", metadata={"site": "C", "vip": True}) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.json()["is_repeated"], again.json()["is_repeated"]) == (False, True)
    assert first.json()["n_identities"] == again.json()["n_identities"] == 21
    assert enrol(api, "ann", sample + 1.0, "one").status_code == 422
    found = api.http.get("/v1/subjects/ann").json()
    assert (found["n_samples"], found["metadata"]) == (1, {"site": "C", "vip": 1})
    assert post(api, "/v1/identify", {"samples": sample.tolist(), "k": 1}).json()["results"][0]["candidates"][0]["id"] == "ann"
    removed = api.http.delete("/v1/subjects/ann").json()
    assert (removed["decision"], removed["n_samples"], removed["n_identities"]) == ("removed", 1, 20)
    assert api.http.delete("/v1/subjects/ann").status_code == 404
    late = enrol(api, "ann", sample, "one", metadata={"site": "C", "vip": True})
    assert (late.status_code, "removed since" in late.json()["detail"]) == (422, True)


def test_names_of_requests_belong_to_keys(api, prepared):
    sample = prepared.queries[[0]] + 50.0
    assert not enrol(api, "ann", sample, "one").json()["is_repeated"]
    api.http.headers["Authorization"] = f"Bearer {prepared.tokens['enrol']}"
    assert not enrol(api, "ann", sample, "one").json()["is_repeated"]


def test_duplicates_are_reported_or_refused(api, prepared):
    told = enrol(api, "twin", prepared.queries[[0]], "a", on_duplicate="ignore").json()
    assert told["duplicates"] == []
    with pytest.warns(UserWarning, match="match another identity"):
        told = enrol(api, "twin2", prepared.queries[[1]], "b", on_duplicate="report").json()
    assert [twin["other"] for twin in told["duplicates"]] == ["p01"]
    refused = enrol(api, "twin3", prepared.queries[[2]], "c", on_duplicate="raise")
    assert (refused.status_code, "nothing was enrolled" in refused.json()["detail"]) == (422, True)


def test_any_id_can_be_enrolled_read_and_removed(api, prepared):
    for name in ("a/b", "a/samples", "\u00fc \u2603", "%2F", "..", ".", "a?b#c", " "):
        place = quote(name, safe="").replace(".", "%2E")
        assert enrol(api, place, prepared.queries[:1], name.encode().hex()).json()["id"] == name
        assert api.http.get(f"/v1/subjects/{place}").json()["id"] == name
        assert api.http.delete(f"/v1/subjects/{place}").json()["id"] == name


def test_lists_have_pages(api):
    seen, after = [], ""
    while after is not None:
        page = api.http.get("/v1/subjects", params={"limit": 8, "after": after}).json()
        seen += page["ids"]
        after = page["next"]
    assert seen == [f"p{k:02d}" for k in range(20)]
    assert api.http.get("/v1/subjects", params={"prefix": "p1", "limit": 3}).json()["ids"] == ["p10", "p11", "p12"]


def test_every_call_with_a_key_is_in_the_audit(api, folder, prepared):
    hashes = api.http.get("/v1/subjects/p00").json()["hash"]
    post(api, "/v1/verify", {"claims": [{"id": "p00", "sample": prepared.queries[0].tolist()}]})
    post(api, "/v1/verify", {"claims": [{"id": "nobody", "sample": prepared.queries[0].tolist()}]})
    post(api, "/v1/verify", {"claims": 3})
    api.http.get("/v1/nothing")
    api.http.delete("/v1/subjects/p00")
    api.http.get("/v1/gallery", headers={"Authorization": "Bearer wrong.key"})
    calls = api.http.get("/v1/audit").json()["calls"]
    assert [(call["action"], call["status"]) for call in reversed(calls)] == [
        ("subject", 200), ("verify", 200), ("verify", 404), ("verify", 422), ("none", 404), ("remove", 200),
    ]  # fmt: skip
    key = prepared.tokens["admin"].split(".")[0]
    assert {call["key"] for call in calls} == {key}
    by_action = {(call["action"], call["status"]): call for call in calls}
    assert by_action["verify", 200]["subjects"] == by_action["remove", 200]["subjects"] == [hashes]
    assert by_action["verify", 200]["n_samples"] == 1
    assert b"p00" not in (folder / "calls").read_bytes() + (folder / "calls-wal").read_bytes()
    page = api.http.get("/v1/audit", params={"limit": 2}).json()
    older = api.http.get("/v1/audit", params={"limit": 2, "before": page["next"]}).json()
    assert older["calls"][0]["number"] == page["calls"][-1]["number"] - 1


def test_each_scope_opens_its_routes_and_no_others(api, prepared):
    bodies = {"verify": {"claims": []}, "identify": {}, "explain": {}, "enrol": {}}
    for route in ROUTES:
        path = route.path.replace("{id}", "p19")
        for scope, token in prepared.tokens.items():
            headers = {"Authorization": f"Bearer {token}"}
            answer = api.http.request(route.method, path, json=bodies.get(route.action), headers=headers)
            is_allowed = route.scope in (None, scope) or scope == "admin"
            assert (answer.status_code != 403) == is_allowed, (route, scope)
            assert answer.status_code in (200, 403, 404, 422)
        for header in ({"Authorization": ""}, {"Authorization": "Bearer x.y"}):
            answer = api.http.request(route.method, path, headers=header)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_every_route_is_in_the_table_of_scopes(api):
    described = api.http.get("/openapi.json").json()["paths"]
    found = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert found == {(route.method, route.path) for route in ROUTES} | {("GET", "/livez"), ("GET", "/readyz")}


def test_the_document_has_examples_that_work(api, prepared):
    document = api.http.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for name in ("VerifyRequest", "IdentifyRequest", "ExplainRequest", "EnrolRequest"):
        (example,) = schemas[name]["examples"]
        assert set(example) <= set(schemas[name]["properties"])
    for name in ("VerifyAnswer", "IdentifyAnswer", "ExplainAnswer", "EnrolAnswer", "Problem"):
        (example,) = schemas[name]["examples"]
        assert getattr(service_schemas, name).model_validate(example, strict=True).model_dump() == example
    (example,) = schemas["IdentifyRequest"]["examples"]
    answer = post(api, "/v1/identify", {**example, "samples": prepared.queries[:1].tolist()})
    assert answer.status_code == 200
    assert "HTTPBearer" in document["components"]["securitySchemes"]


def test_the_open_paths_are_for_reading_and_have_strict_headers(api):
    del api.http.headers["Authorization"]
    for path in sorted(OPEN):
        answer = api.http.get(path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
        assert not any(name.startswith("access-control") for name in answer.headers)
        assert api.http.post(path).status_code == 405
        assert api.http.head(path).status_code == 200


def test_metrics_count_routes_not_people(api, prepared):
    api.http.get("/v1/subjects/p00")
    text = api.http.get("/metrics", headers={"Authorization": f"Bearer {prepared.tokens['metrics']}"}).text
    assert 'simtree_requests_total{route="subject",status="200"} 1.0' in text
    assert "simtree_gallery_identities 20.0" in text
    assert "simtree_in_flight 1.0" in text
    assert "p00" not in text


BAD = [
    ("/v1/identify", "{", 422),
    ("/v1/identify", "[" * 5000, 400),
    ("/v1/identify", '{"samples": [[NaN, 1, 2, 3]]}', 422),
    ("/v1/identify", '{"samples": [[1e999, 1, 2, 3]]}', 422),
    ("/v1/identify", '{"samples": [[' + "9" * 5000 + ", 1, 2, 3]]}", 400),
    ("/v1/identify", '{"samples": [["1", 1, 2, 3]]}', 422),
    ("/v1/identify", '{"samples": [[true, 1, 2, 3]]}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3]]}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3, 4], [1]]}', 422),
    ("/v1/identify", '{"samples": []}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3, 4]], "k": 51}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3, 4]], "k": 0}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3, 4]], "max_fpir": 1}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3, 4]], "more": 1}', 422),
    ("/v1/identify", '{"samples": [[1, 2, 3, 4]], "where": {"site": []}}', 422),
    ("/v1/identify", "null", 422),
    ("/v1/identify", b"\xff\xfe", 422),
    ("/v1/verify", '{"claims": [{"id": "", "sample": [1, 2, 3, 4]}]}', 422),
    ("/v1/verify", '{"claims": [{"id": "\\u0000", "sample": [1, 2, 3, 4]}]}', 422),
    ("/v1/verify", '{"claims": [{"id": "\\ud800", "sample": [1, 2, 3, 4]}]}', 422),
    ("/v1/verify", '{"claims": [{"id": "nobody", "sample": [1, 2, 3, 4]}]}', 404),
    ("/v1/subjects/x/samples", '{"samples": [[1, 2, 3, 4]], "metadata": {"": 1}}', 422),
    ("/v1/subjects/x/samples", '{"samples": [[1, 2, 3, 4]], "metadata": {"n": 99999999999999999999}}', 422),
    ("/v1/subjects/x/samples", '{"samples": [[1, 2, 3, 4]], "time": "yesterday"}', 422),
    ("/v1/subjects/%00/samples", '{"samples": [[1, 2, 3, 4]]}', 422),
    ("/v1/subjects/%ff/samples", '{"samples": [[1, 2, 3, 4]]}', 400),
]


def test_bad_requests_get_one_sentence_and_change_nothing(api):
    headers = {"Content-Type": "application/json", "Idempotency-Key": "x"}
    for path, content, status in BAD:
        answer = api.http.post(path, content=content, headers=headers)
        assert answer.status_code == status, (path, content[:100], answer.text)
        assert set(answer.json()) == {"detail", "request"}
        assert "people.gallery" not in answer.text
        assert len(answer.json()["detail"]) < 400
    assert len(api.http.get("/v1/subjects").json()["ids"]) == 20


def test_an_enrolment_needs_a_name(api, prepared):
    answer = post(api, "/v1/subjects/x/samples", {"samples": prepared.queries[:1].tolist()})
    assert (answer.status_code, "idempotency-key" in answer.json()["detail"].lower()) == (422, True)


def test_who_is_enrolled_cannot_be_guessed_from_errors(api, prepared):
    answer = post(api, "/v1/verify", {"claims": [{"id": "p0", "sample": prepared.queries[0].tolist()}]})
    assert answer.json()["detail"] == "the id is not enrolled."


def test_an_empty_gallery_says_so(started, folder, forest):
    (folder / "people.gallery").unlink()
    Gallery.create(folder / "people.gallery", forest).close()
    with started(folder) as api:
        answer = post(api, "/v1/identify", {"samples": [[1.0] * 4]})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the gallery is empty; enrol somebody first.")


def test_a_gallery_in_postgresql_is_served_alike(started, folder, postgres_server, prepared):
    address = postgres_server.address("served")
    with Gallery.open(folder / "people.gallery") as gallery:
        gallery.backup(address)
        expected = gallery.identify(prepared.queries[:1], k=2)
    with started(folder, gallery=address) as api:
        answer = post(api, "/v1/identify", {"samples": prepared.queries[:1].tolist(), "k": 2}).json()
        assert [candidate["score"] for candidate in answer["results"][0]["candidates"]] == expected.score.tolist()
        repeated = [enrol(api, "ann", prepared.queries[:1] + 50.0, "one").json()["is_repeated"] for _ in range(2)]
        assert repeated == [False, True]
        assert api.http.get("/v1/subjects", params={"prefix": "a"}).json()["ids"] == ["ann"]
        assert api.http.delete("/v1/subjects/ann").status_code == 200
        refused = post(api, "/v1/identify", {"samples": [[1.0]]})
        assert (refused.status_code, "postgresql" in refused.text) == (422, False)


def test_numbers_that_json_cannot_hold():
    assert [number(value) for value in (1, math.inf, -math.inf, math.nan)] == [1.0, None, None, None]


def test_a_model_of_a_table_is_served(started, folder, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 6)
    table = pd.DataFrame(
        {"colour": np.array(["red", "green", "blue"])[y % 3], "height": rng.normal(y, 0.5), "left": y % 2 == 0}
    )
    table["born"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(y, unit="D")
    table.loc[::7, ["colour", "height"]] = None
    model = SimilarityTree(max_depth=4, n_pairs=500, random_state=0).fit(table, y)
    with Gallery.create(tmp_path / "words.gallery", model) as gallery:
        gallery.enroll([f"p{who}" for who in y], table)
        expected = gallery.verify(["p0", "p1"], table.iloc[[1, 0]]).score
    sent = [["red", float(table["height"][1]), True, "2000-01-01"], [None, None, True, "2000-01-01"]]
    with started(folder, gallery=tmp_path / "words.gallery") as api:
        claims = [{"id": id, "sample": sample} for id, sample in zip(["p0", "p1"], sent, strict=True)]
        answer = post(api, "/v1/verify", {"claims": claims}).json()
        assert [result["score"] for result in answer["results"]] == expected.tolist()
        found = post(api, "/v1/explain", {"id": "p0", "sample": sent[0]}).json()
        values = {entry["feature"]: entry["value"] for entry in found["contributions"]}
        assert values == dict(zip(["colour", "height", "left", "born"], sent[0], strict=True))
        assert found["score"] == expected[0]
        assert enrol(api, "new", np.array(sent, dtype=object), "words").json()["n_samples"] == 2
        for bad, said in (
            (["red", "tall", True, "2000-01-01"], "'height' of text, such as 'tall', but the model was fitted on numbers"),
            (["red", 1.0, True, "soon"], "the value 'soon' for a date"),
            (["red", 1.0, True], "3 columns"),
        ):
            refused = post(api, "/v1/identify", {"samples": [bad]})
            assert refused.status_code == 422
            assert said in refused.text


def test_a_client_sends_words_and_what_is_missing():
    sent = _cells([["red", np.nan, None, np.float32(1.5), True], ["blue", 2, pd.NA, 1.0, False]])
    assert sent == [["red", None, None, 1.5, True], ["blue", 2, None, 1.0, False]]
    assert _cells(np.array([[1.0, np.nan]])) == [[1.0, None]]
