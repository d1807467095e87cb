from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from okf_compiler.whole_file import write_whole


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("durable", [False, True])
def test_what_is_written_is_all_there_is(tmp_path: Path, private: bool, durable: bool) -> None:
    for data, expected in (("ä\r\n", "ä\r\n".encode()), (b"\xff\n", b"\xff\n")):
        write_whole(tmp_path / "a", data, private=private, durable=durable)
        assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == {"a": expected}


def test_a_new_private_file_is_its_owners_and_a_replaced_one_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_whole(file, "x", private=True)
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    write_whole(file, "y", private=True)
    assert file.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "a", "\udcff")
    with pytest.raises(OSError):
        write_whole(tmp_path / "missing" / "a", "x")
    assert [(f.name, f.read_text(encoding="utf-8")) for f in tmp_path.iterdir()] == [("a", "before")]


@pytest.mark.parametrize("name", ["folder", "missing/a"])
def test_an_error_names_the_file_and_not_its_draft(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught:
        write_whole(tmp_path / name, "x")
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / name), None)
    assert [file.name for file in tmp_path.rglob("*")] == ["folder"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text(encoding="utf-8") == "x"


def test_writers_at_the_same_time_never_mix(tmp_path: Path) -> None:
    texts = [letter * 200_000 for letter in "abcdefgh"]
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write_whole, tmp_path / "a", text) for text in texts * 5]:
            future.result()
    assert (tmp_path / "a").read_text(encoding="utf-8") in texts
    assert [f.name for f in tmp_path.iterdir()] == ["a"]
