"""Files from a server that is slow, forgetful or wrong."""

from __future__ import annotations

import hashlib
import socket
import threading

import pytest
from tests.datasets.conftest import Page

from nonneg.datasets import download
from nonneg.datasets.download import DownloadError, TransferLine, fetch
from nonneg.datasets.store import DatasetNotFoundError

BODY = bytes(range(256)) * 40
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "folder" / "file.bin"


def ranges(server):
    return [asked for _, asked in server.requests]


def test_a_file_arrives_whole_and_leaves_nothing_beside_it(server, target):
    server.pages["/file"] = Page(BODY, pause=0.01)
    seen = []
    found = fetch(f"{server.address}/file", target, sha256=SHA256, watch=lambda *now: seen.append(now))
    assert found == target
    assert target.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert len(seen) > 1
    assert {path.name for path in target.parent.iterdir()} <= {"file.bin", "file.bin.lock"}
    assert all(agent.startswith("nonneg/") for agent in server.agents)


def test_what_is_there_is_not_asked_for(server, target):
    target.parent.mkdir()
    target.write_bytes(b"here")
    assert fetch(f"{server.address}/file", target).read_bytes() == b"here"
    assert server.requests == []


def test_a_broken_transfer_goes_on_where_it_ended(server, target):
    server.pages["/file"] = Page(BODY, cut=[3000, 1000])
    assert fetch(f"{server.address}/file", target, sha256=SHA256).read_bytes() == BODY
    assert ranges(server) == [None, "bytes=3000-", "bytes=4000-"]


def test_the_next_run_goes_on_where_the_last_one_ended(server, target, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.pages["/file"] = Page(BODY, cut=[5000, 0])
    with pytest.raises(DownloadError, match=r"ended after 5000 of 10240 bytes.*The 5000 bytes received"):
        fetch(f"{server.address}/file", target)
    assert not target.exists()
    server.requests.clear()
    assert fetch(f"{server.address}/file", target, sha256=SHA256).read_bytes() == BODY
    assert ranges(server) == ["bytes=5000-"]


def test_a_server_without_ranges_is_asked_for_the_whole(server, target):
    server.pages["/file"] = Page(BODY, cut=[3000], ranges=False)
    assert fetch(f"{server.address}/file", target, sha256=SHA256).read_bytes() == BODY
    assert ranges(server) == [None, "bytes=3000-"]


@pytest.mark.parametrize("etag", [True, False])
def test_a_file_that_changed_in_between_is_not_patched_together(server, target, etag):
    page = server.pages["/file"] = Page(b"old" * 1000, cut=[1500, 0, 0, 0, 0], etag=etag)
    with pytest.raises(DownloadError):
        fetch(f"{server.address}/file", target)
    page.body, page.cut = BODY, []
    address = f"{server.address}/file"
    if etag:
        assert fetch(address, target, sha256=SHA256).read_bytes() == BODY
        return
    # Nothing says that it changed but the checksum.
    with pytest.raises(DownloadError, match="does not have the expected contents"):
        fetch(address, target, sha256=SHA256)
    assert fetch(address, target, sha256=SHA256).read_bytes() == BODY


def test_a_part_longer_than_the_file_is_dropped(server, target):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(b"x" * 20000)
    server.pages["/file"] = Page(BODY)
    assert fetch(f"{server.address}/file", target, sha256=SHA256).read_bytes() == BODY


def test_another_part_than_was_asked_for_is_refused(server, target):
    server.pages["/file"] = Page(BODY, cut=[3000], shift=7)
    with pytest.raises(DownloadError, match="sent a range other than the requested"):
        fetch(f"{server.address}/file", target)


@pytest.mark.parametrize("check", [{"sha256": "0" * 64}, {"git_blob": "dc267f6c"}])
def test_other_contents_are_refused_and_not_kept(server, target, check):
    server.pages["/file"] = Page(BODY)
    with pytest.raises(DownloadError, match="does not have the expected contents"):
        fetch(f"{server.address}/file", target, **check)
    assert [path.name for path in target.parent.iterdir()] == ["file.bin.lock"]


def test_the_name_git_gives_a_file_is_its_own(server, target):
    server.pages["/file"] = Page(b"hello\n")
    # What `git hash-object` says of these six bytes.
    fetch(f"{server.address}/file", target, git_blob="ce013625030ba8dba906f756967f9e9ca394464a")


def test_redirections_are_followed(server, target):
    server.pages["/old"] = Page(to="/file")
    server.pages["/file"] = Page(BODY)
    assert fetch(f"{server.address}/old", target, sha256=SHA256).read_bytes() == BODY


@pytest.mark.parametrize("place", ["file:///etc/hostname", "ftp://127.0.0.1/file"])
def test_redirections_off_the_web_are_not_followed(server, target, place):
    server.pages["/old"] = Page(to=place)
    with pytest.raises(
        DownloadError, match=r"redirects to .*not followed|could not be downloaded|answers 302"
    ):
        fetch(f"{server.address}/old", target)
    assert not target.exists()


def test_secure_addresses_lead_to_no_insecure_ones():
    request = download.urllib.request.Request("https://example.org/file")
    with pytest.raises(DownloadError, match="not followed"):
        download._Redirections().redirect_request(request, None, 302, "", {}, "http://example.org/file")


def test_a_file_that_is_not_there_is_said_at_once(server, target):
    with pytest.raises(DownloadError, match="answers 404") as caught:
        fetch(f"{server.address}/none", target)
    assert isinstance(caught.value, DatasetNotFoundError)
    assert len(server.requests) == 1


def test_a_busy_server_is_asked_again(server, target):
    server.pages["/file"] = Page(BODY, status=[503, 429])
    assert fetch(f"{server.address}/file", target, sha256=SHA256).read_bytes() == BODY
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_given_up(server, target):
    server.pages["/file"] = Page(BODY, status=[500] * 20)
    with pytest.raises(DownloadError, match="could not be downloaded: it answers 500"):
        fetch(f"{server.address}/file", target)
    assert len(server.requests) == download.ATTEMPTS


def test_a_server_that_falls_silent_is_given_up(server, target, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    server.pages["/file"] = Page(BODY, silent=0.12)
    with pytest.raises(DownloadError, match="timed out"):
        fetch(f"{server.address}/file", target)


def test_a_server_that_often_falls_silent_still_brings_the_file(server, target, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    server.pages["/file"] = Page(b"seven letters", pause=0.1)
    assert fetch(f"{server.address}/file", target).read_bytes() == b"seven letters"
    assert len(server.requests) > download.ATTEMPTS
    assert all(asked is not None for asked in ranges(server)[1:])


def test_a_file_of_unknown_length_ends_where_the_connection_does(server, target):
    server.pages["/file"] = Page(BODY, length=False)
    assert fetch(f"{server.address}/file", target, sha256=SHA256).read_bytes() == BODY


def test_no_connection_at_all(target, monkeypatch):
    monkeypatch.setattr(download, "PAUSE", 0.0)
    with socket.socket() as taken:  # bound but not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(DownloadError, match=r"could not be downloaded: .*refused"):
            fetch(f"http://127.0.0.1:{taken.getsockname()[1]}/file", target)


def test_two_at_once_fetch_it_once(server, target):
    server.pages["/file"] = Page(BODY, pause=0.02)
    threads = [threading.Thread(target=fetch, args=(f"{server.address}/file", target)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == BODY
    assert len(server.requests) == 1


def test_progress_on_a_terminal_is_one_line(capsys, monkeypatch):
    line = TransferLine("tdt2", 2)
    monkeypatch.setattr(line, "_live", True)
    line.begin(2)
    line(1_000_000, 2_000_000)
    line(2_000_000, 2_000_000)
    line.close()
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "file 2 of 2: 2.0 of 2.0 MB" in shown


def test_progress_elsewhere_names_the_set(capsys):
    line = TransferLine("tdt2", 1)
    line.begin(1)
    line(10, None)
    line.close()
    assert capsys.readouterr().err == "nonneg: downloading tdt2, file 1 of 1\n"


def test_pauses_double_while_nothing_arrives(server, target, monkeypatch):
    pauses = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    monkeypatch.setattr(download, "PAUSE", 0.5)
    server.pages["/file"] = Page(BODY, status=[500] * 3)
    fetch(f"{server.address}/file", target)
    assert [pause for pause in pauses if pause >= 0.5] == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("total", [None, 4_000_000])
def test_progress_on_a_terminal_tells_what_has_arrived(total, capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(download.time, "monotonic", lambda: now[0])
    line = TransferLine("tdt2", 3)
    monkeypatch.setattr(line, "_live", True)
    line.begin(2)
    for seconds, arrived in ((0.0, 1_000_000), (0.1, 2_000_000), (0.2, 3_000_000), (0.25, 4_000_000)):
        now[0] = 100.0 + seconds
        line(arrived, total)
    line.close()
    shown = capsys.readouterr().err
    sizes = ["1.0", "3.0", "4.0"] if total else ["1.0", "3.0"]  # a few times a second, and the end
    end = " of 4.0 MB" if total else " MB"
    assert [part for part in shown.split("\r") if part] == [
        f"nonneg: downloading tdt2, file 2 of 3: {size}{end}" + "\n" * (size == sizes[-1]) for size in sizes
    ]


def test_a_shorter_line_covers_the_one_before(capsys, monkeypatch):
    line = TransferLine("a", 100)
    monkeypatch.setattr(line, "_live", True)
    line.begin(99)
    line(1, 1)
    line.begin(1)
    line(2, 2)
    first, second = capsys.readouterr().err.split("\r")[1:]
    assert len(second) == len(first)
    untouched = TransferLine("a", 1)
    monkeypatch.setattr(untouched, "_live", True)
    untouched.close()
    assert capsys.readouterr().err == ""


def test_elsewhere_the_first_the_last_and_every_hundredth_file_are_told(capsys):
    line = TransferLine("tdt2", 250)
    for number in range(1, 251):
        line.begin(number)
    assert [text.split()[4] for text in capsys.readouterr().err.splitlines()] == ["1", "100", "200", "250"]


class Answer:
    """What a server says about the file."""

    def __init__(self, status, **headers):
        self.status, self.headers = status, {name.replace("_", "-"): text for name, text in headers.items()}


@pytest.mark.parametrize(
    ("answer", "wanted", "extent"),
    [
        (Answer(200, Content_Length="70"), 0, (0, 70)),
        (Answer(200, Content_Length="70"), 30, (0, 70)),
        (Answer(200), 30, (0, None)),
        (Answer(200, Content_Length="many"), 0, (0, None)),
        (Answer(206, Content_Range="bytes 30-69/70"), 30, (30, 70)),
        (Answer(206, Content_Range="bytes 30-69/*"), 30, (30, None)),
        (Answer(200, Content_Range="bytes 30-69/70", Content_Length="70"), 30, (0, 70)),
    ],
)
def test_where_an_answer_begins_and_how_long_the_file_is(answer, wanted, extent):
    assert download._extent(answer, wanted) == extent
    for wrong in (Answer(206), Answer(206, Content_Range="bytes 31-69/70")):
        with pytest.raises(download._Broken, match="a range other than the requested one"):
            download._extent(wrong, 30)


def test_more_bytes_than_announced_are_dropped(server, target, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.pages["/file"] = Page(BODY, cut=[3000])
    monkeypatch.setattr(download, "_extent", lambda answer, wanted: (0, 2999))
    with pytest.raises(DownloadError, match="3000 bytes arrived, but 2999 were announced"):
        fetch(f"{server.address}/file", target)
    assert not target.with_name("file.bin.part").exists()
