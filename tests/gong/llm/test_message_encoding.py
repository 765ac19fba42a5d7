from hypothesis import given
from hypothesis import strategies as st

from gong.llm.wires.message_encoding import HistorySelection, is_system_message
from tape.context.view import Message, MessageSnapshot
from tape.model.entries import Text

PROMPT = (Message("system", (Text("be brief"),)),)
ROLES = st.sampled_from(["system", "user", "assistant"])


@given(st.lists(st.lists(ROLES, max_size=4), max_size=5), st.booleans(), st.booleans())
def test_a_selection_kept_while_a_history_grows_equals_a_fresh_one(runs, is_new, plain):
    kept, every, history = HistorySelection(is_system_message), HistorySelection(), []
    for run in runs:
        history = [*history] if is_new else history
        history += [Message(role, (Text(str(n)),)) for n, role in enumerate(run)]
        asked, now = tuple(history) if plain else MessageSnapshot(history), [*history]
        assert [*kept.follow(asked)] == [one for one in now if one.role == "system"]
        told = every.follow(asked, PROMPT)
        assert [*told] == [*PROMPT, *now]
        assert [*every.follow(asked)] == now
        assert [*told] == [*PROMPT, *now]
