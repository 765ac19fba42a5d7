import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from tape.errors import Busy
from tape.store.disk import Folder
from tape.store.locks import Lock, hold_lock, limit_lock_wait

TRY = """
import sys
from tape.store.disk import Folder
from tape.errors import Busy
from tape.store.locks import Lock
try:
    Lock.take(Folder.open(sys.argv[1]), "main")
except Busy as error:
    print(error)
else:
    print("free")
"""


@pytest.fixture
def locks(tmp_path):
    with Folder.open(tmp_path) as folder:
        yield folder


def seen_by_another(folder):
    """Return what a process of its own finds: `free`, or who holds the lock."""
    done = subprocess.run(
        [sys.executable, "-c", TRY, folder.name], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def is_free(folder):
    try:
        Lock.take(folder, "main").close()
    except Busy:
        return False
    return True


def test_a_held_lock_is_busy_and_says_who_holds_it(locks):
    lock = Lock.take(locks, "main")
    with pytest.raises(Busy, match=f"main is being written by process {os.getpid()} since 20"):
        Lock.take(locks, "main")
    assert f"process {os.getpid()}" in seen_by_another(locks)
    lock.close()
    assert seen_by_another(locks) == "free"


def test_closing_twice_is_fine_and_does_not_close_what_came_after(locks):
    lock = Lock.take(locks, "main")
    assert lock.is_held
    lock.close()
    assert not lock.is_held
    again = Lock.take(locks, "main")
    lock.close()
    assert again.is_held
    assert not is_free(locks)
    again.close()


def test_names_lock_apart_and_files_stay(locks, tmp_path):
    with hold_lock(locks, "main"), hold_lock(locks, "refs"):
        pass
    assert {file.name for file in tmp_path.iterdir()} == {"main", "refs"}
    assert is_free(locks)


def test_an_error_inside_lets_go(locks):
    with pytest.raises(ZeroDivisionError), hold_lock(locks, "main"):
        _ = 1 // 0
    assert is_free(locks)


def test_waiting_ends_when_the_other_lets_go(locks):
    lock = Lock.take(locks, "main")
    with pytest.raises(Busy):
        Lock.take(locks, "main")
    freed = []

    def let_go():
        freed.append(True)
        lock.close()

    timer = threading.Timer(0.1, let_go)
    timer.start()
    Lock.take(locks, "main", wait=60).close()
    assert freed == [True]
    timer.join()


HOLD = """
import sys
from tape.store.disk import Folder
from tape.store.locks import Lock
lock = Lock.take(Folder.open(sys.argv[1]), "refs")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def stopped(locks):
    """A process that holds the journal and is stopped."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, locks.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "held\n"
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    yield child
    child.send_signal(signal.SIGCONT)
    child.communicate()


def test_a_waiting_writer_is_given_the_holder_and_stops_in_time(locks, stopped):
    told = []
    with limit_lock_wait(1.2, told.append), pytest.raises(Busy) as raised, hold_lock(locks, "refs"):
        pass
    (said,) = told
    who = f"process {stopped.pid} since 20"
    assert said.startswith(f"waiting for the journal, held by {who}")
    assert str(raised.value).startswith(f"the journal is being written by {who}")
    for text in (said, str(raised.value)):
        assert f"stopped: `kill -CONT {stopped.pid}` resumes it)" in text


def test_the_holder_is_known_where_the_file_does_not_tell_it(locks, stopped):
    os.truncate(f"{locks.name}/refs", 0)
    with pytest.raises(Busy, match=f"written by process {stopped.pid} "):
        Lock.take(locks, "refs")


def test_a_program_that_is_started_does_not_inherit_it(locks):
    lock = Lock.take(locks, "main")
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock.close()
        assert is_free(locks)
    finally:
        child.kill()
        child.wait()


def test_a_forked_child_does_not_inherit_it(locks):
    lock = Lock.take(locks, "main")
    asked, told = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: (told.send(lock.is_held), told.recv())
    )
    child.start()
    try:
        assert asked.recv() is False
        assert not is_free(locks)
        lock.close()
        assert is_free(locks)
    finally:
        asked.send("go")
        child.join()


def test_a_killed_process_leaves_none_behind(locks):
    script = TRY.replace('print("free")', 'print("mine", flush=True); import time; time.sleep(60)')
    script = script.replace("    Lock.take(", "    kept = Lock.take(")
    with subprocess.Popen(
        [sys.executable, "-c", script, locks.name], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "mine\n"
        assert not is_free(locks)
        child.kill()
        child.wait()
    assert is_free(locks)


def test_a_link_in_the_place_of_a_lock_is_not_followed(locks, tmp_path):
    (tmp_path / "main").symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Lock.take(locks, "main")
    assert not (tmp_path / "elsewhere").exists()
