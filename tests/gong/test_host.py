"""Sessions inside another program."""

import gong
from gong import trust


async def test_the_settings_of_a_folder_s_project_count_once_they_are_trusted(tmp_path):
    """M009: as on the command line."""
    project, home = tmp_path / "work", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    (project / ".gong").mkdir()
    (project / ".gong/config.toml").write_text("max_turns = 7\n")
    environ = {"HOME": str(home)}
    home.mkdir()

    async def read_limit():
        how = {"model": "offline/rules", "store": tmp_path / "tapes", "environ": environ}
        async with gong.open_session(project, **how) as session:
            return session.setup.config.max_turns

    assert await read_limit() == 0
    trust.trust_project(trust.read_project(str(project), environ), environ)
    assert await read_limit() == 7
