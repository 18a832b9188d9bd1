"""Topics over time and the tree over topics."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from nonneg.applications import TopicModel
from nonneg.applications.topics.over_time import read_dates, topics_over_time
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError, UnknownNameError


def over_time(proportions, times, **options):
    labels = [f"topic {at}" for at in range(np.shape(proportions)[1])]
    return topics_over_time(np.asarray(proportions), times, labels, **options)


pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("2021-12-31", "2021-12-31T00:00:00"),
        ("2021-12-31T23:30:00-02:00", "2022-01-01T01:30:00"),
        ("2021-12", "2021-12-01T00:00:00"),
        ("2021", "2021-01-01T00:00:00"),
        (2021, "2021-01-01T00:00:00"),
        ("20211231", "2021-12-31T00:00:00"),
        ("2021/12/31", "2021-12-31T00:00:00"),
        ("31.12.2021", "2021-12-31T00:00:00"),
        ("2.1.2021", "2021-01-02T00:00:00"),
        ("12/31/2021 10:15", "2021-12-31T10:15:00"),
        ("December 31, 2021", "2021-12-31T00:00:00"),
        ("31 Dec 2021", "2021-12-31T00:00:00"),
        ("Fri, 31 Dec 2021 22:00:00 +0000", "2021-12-31T22:00:00"),
        (1640995199, "2021-12-31T23:59:59"),
        (datetime.date(2021, 12, 31), "2021-12-31T00:00:00"),
        (datetime.datetime(2021, 12, 31, tzinfo=datetime.UTC), "2021-12-31T00:00:00"),
        (np.datetime64("2021-12-31"), "2021-12-31T00:00:00"),
    ],
)
def test_dates_in_many_notations(entry, expected):
    assert read_dates([entry], 1)[0][0].isoformat() == expected


def test_dates_that_are_missing_or_wrong_are_counted_and_named():
    entries = ["2020-05-01", None, "", float("nan"), "soon", "2020-13-01", True, "n/a"]
    dates, unreadable = read_dates(np.array(entries, dtype=object), 8)
    assert dates.isna().sum() == 7
    assert unreadable == [(4, "soon"), (5, "2020-13-01"), (6, "True")]
    pd = pytest.importorskip("pandas")
    series = pd.to_datetime(pd.Series(["2020-05-01", None]))
    for times in (series, series.dt.tz_localize("UTC")):
        assert read_dates(times, 2)[0].isna().tolist() == [False, True]


def test_all_dates_together_tell_the_order_of_day_and_month():
    assert str(read_dates(["03/04/2021", "25/04/2021"], 2)[0][0])[:10] == "2021-04-03"
    assert str(read_dates(["03/04/2021", "04/25/2021"], 2)[0][0])[:10] == "2021-03-04"
    # Twelve is a month too.
    assert str(read_dates(["12/03/2021", "05/25/2021"], 2)[0][0])[:10] == "2021-12-03"
    assert str(read_dates(["03/12/2021", "25/05/2021"], 2)[0][0])[:10] == "2021-12-03"
    for unclear in (["03/04/2021"], ["03/04/2021", "25/04/2021", "04/25/2021"]):
        with pytest.raises(InvalidDataError, match="'03/04/2021' do not show whether the day or the month"):
            read_dates(unclear, len(unclear))


@pytest.mark.parametrize(
    ("n_documents", "days", "unit", "n_periods"),
    [
        (600, 2, "hour", 48),
        (600, 50, "day", 50),
        (400, 200, "week", 30),
        (600, 1500, "month", 50),
        (600, 10000, "year", 28),
        (14, 100, "month", 4),
        (8, 900, "year", 3),
        (12, 0.001, "day", 1),
    ],
)
def test_the_unit_follows_from_the_span_and_the_number_of_documents(n_documents, days, unit, n_periods):
    start = np.datetime64("2000-01-03T00:00:00")
    times = start + (np.linspace(0, days * 86400 - 1, n_documents)).astype("timedelta64[s]")
    found = over_time(np.ones((n_documents, 1)), times)
    assert found.unit == unit
    assert abs(len(found.counts) - n_periods) <= 1
    assert found.counts.sum() == n_documents
    assert found.periods[0] == {"hour": "2000-01-03T00", "month": "2000-01", "year": "2000"}.get(
        unit, "2000-01-03"
    )


def test_proportions_are_means_over_the_documents_of_a_period_that_have_a_topic():
    found = over_time([[1, 0], [0, 1], [0, 0], [0.5, 0.5], [1, 0]], ["2001", "2003", "2003", "2003", None])
    assert (found.unit, found.n_missing, found.n_empty) == ("year", 1, 1)
    assert found.periods == ["2001", "2002", "2003"]
    assert found.counts.tolist() == [1, 0, 2]
    assert over_time(np.ones((600, 1)), [2001 + at % 3 for at in range(600)]).periods == found.periods
    assert found.starts.astype("datetime64[D]").astype(str).tolist()[1] == "2002-01-01"
    np.testing.assert_allclose(found.proportions, [[1, 0], [np.nan, np.nan], [0.25, 0.75]])


def test_the_model_brings_proportions_and_labels():
    texts = ["cat dog cat", "dog cat pet", "bond stock", "stock market bond", "pet dog", "market stock"]
    model = TopicModel(2, random_state=0).fit(texts).rename_topics({0: "first"})
    found = model.over_time(texts, [2001, 2001, 2002, 2002, 2001, 2002])
    assert found.labels[0] == "first"
    animals = int(model.predict(["cat dog"])[0])
    assert found.proportions[0, animals] > 0.9
    assert found.proportions[1, animals] < 0.1
    with pytest.raises(ShapeError, match="Expected one date per document, times of shape"):
        model.over_time(texts, [2001, 2002])
    with pytest.raises(UnknownNameError, match="unit='decade' is not known"):
        model.over_time(texts, [2001] * 6, unit="decade")
    with pytest.raises(
        InvalidDataError, match="None of the 6 documents has a topic and a date that can be read; the first"
    ):
        model.over_time(texts, ["soon"] * 6)
    with pytest.raises(InvalidParameterError, match=r"unit='hour' gives \d+ periods"):
        model.over_time(texts, [2001] * 5 + [1900], unit="hour")
    with pytest.raises(ShapeError, match="Expected one date per document"):
        model.over_time(texts, "2001-01-01")


def test_the_tree_joins_planted_families_first():
    # Three families of three subjects: half of the words of a document are those of the family.
    rng = np.random.default_rng(0)
    counts = np.zeros((270, 120))
    for row in range(270):
        subject = row % 9
        counts[row, 10 * (subject // 3) : 10 * (subject // 3) + 10] += rng.multinomial(20, np.full(10, 0.1))
        counts[row, 30 + 10 * subject : 40 + 10 * subject] += rng.multinomial(20, np.full(10, 0.1))
    model = TopicModel(9, random_state=0).fit(counts)
    subjects = model.topics_[:, 30:].reshape(9, 9, 10).sum(axis=2).argmax(axis=1)
    families = [{subjects[at] // 3 for at in group} for group in model.topic_groups(3)]
    assert sorted(map(len, families)) == [1, 1, 1]
    assert set.union(*families) == {0, 1, 2}
    assert model.topic_groups(1) == [list(range(9))]
    assert model.topic_groups(9) == [[at] for at in range(9)]
    for n_groups in range(1, 10):
        assert len(model.topic_groups(n_groups)) == n_groups
    tree = model.hierarchy()
    assert np.all(np.diff(tree[:, 2]) >= 0)
    assert 0 < tree[0, 2] < np.sqrt(2)
    for wrong in (10, 2.5):
        with pytest.raises(InvalidParameterError, match=f"from 1 to the number of topics, 9; got {wrong}"):
            model.topic_groups(wrong)
    assert len(model.merge_topics(model.topic_groups(2), counts).topics_) == 2
    assert TopicModel(1, random_state=0).fit(counts).topic_groups(1) == [[0]]
