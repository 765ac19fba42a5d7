import pytest

from gong.summary.sentences import (
    PINNED,
    clip_text,
    find_remembered_fact,
    is_question,
    split_sentences,
    weigh_sentence,
)


def test_sentences_end_at_stops_and_lines_but_not_at_abbreviations():
    text = "Use v1.2 of it. Ask e.g. Dr. Who!  Why? yes\n- a point\n2. 用 Redis。不要推送！好"
    assert [*split_sentences(text)] == [
        *("Use v1.2 of it.", "Ask e.g. Dr. Who!", "Why?", "yes"),
        *("a point", "用 Redis。", "不要推送！", "好"),
    ]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("remember that the port is 8143", "the port is 8143"),
        ("Please remember: a = b", "a = b"),
        ("note: x", "x"),
        ("Note that the key is in vault.", "the key is in vault."),
        ("don't forget the milk", "the milk"),
        ("请记住，暗号是蓝鹭", "暗号是蓝鹭"),
        ("备注：端口 80", "端口 80"),
        ("note taking is fun", None),
        ("remember the port?", None),
        ("do you remember that the port is 1?", None),
        ("I remember", None),
    ],
)
def test_a_wish_to_have_something_remembered_is_known(text, fact):
    assert find_remembered_fact(text) == fact


@pytest.mark.parametrize(
    "text",
    [
        *("what is the code word", "Which port did I say", "who owns billing", "where is it"),
        *("So how many ports are there", "Is it blue?", "暗号是什么", "端口是多少？", "好了吗"),
        "do you know the port",
    ],
)
def test_questions_are_known_with_and_without_a_mark(text):
    assert is_question(text)
    assert weigh_sentence(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        *("When you deploy, use port 80.", "The code word is heron, ok?", "What I need is a saw."),
        *("无论什么都不要删", "记住谁是负责人"),
    ],
)
def test_statements_are_no_questions(text):
    assert not is_question(text)
    assert weigh_sentence(text) > 0


def test_facts_weigh_more_the_more_they_say():
    rising = [
        *("read a.txt", "Fine by all of us.", "We deploy on Thursdays.", "The port is 8143."),
        *("The manager is called Ingrid.", "Never push to main.", "Remember the port."),
    ]
    weights = [weigh_sentence(text) for text in rising]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (0, PINNED)


@pytest.mark.parametrize("text", ["Test 4 is red.", "Release 2 is on Friday.", "build no = 7"])
def test_a_noun_that_could_be_an_order_states_something(text):
    assert weigh_sentence(text) >= 2


@pytest.mark.parametrize(
    "text", ["check what is in a.txt", "list the files that are red", "修复它"]
)
def test_orders_state_nothing(text):
    assert weigh_sentence(text) == 0


def test_a_long_text_is_cut_in_the_middle():
    assert clip_text("a  b\nc", 9) == "a b c"
    assert clip_text("x" * 20 + "y" * 20, 11) == "xxxx … yyyy"
