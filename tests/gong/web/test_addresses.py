"""Addresses in their one spelling, and the IP addresses that no page may come from."""

from ipaddress import ip_address

import pytest

from gong.ip_addresses import is_public
from gong.web.addresses import InvalidAddress, parse_address, parse_ip

PRIVATE = [
    # loopback, in every spelling
    *("127.0.0.1", "127.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1"),
    *("017700000001", "127.0.0.1.", "①②⑦.⓪.⓪.①", "[::1]", "[0:0:0:0:0:0:0:1]"),
    # private
    *("10.0.0.1", "10.255.255.255", "0xa.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    *(
        "3232235521",
        "0300.0250.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "[fc00::1]",
        "[fd12:3456::1]",
    ),
    # link-local and metadata
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.0.1", "[fe80::1]", "[febf::1]"),
    *("100.100.100.200", "168.63.129.16", "192.0.0.192", "[fd00:ec2::254]", "[fec0::1]"),
    # this network, multicast, reserved, documentation, benchmarks
    *("0.0.0.0", "0", "0.1.2.3", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.88.99.1", "[::]", "[ff02::1]"),
    *("[2001:db8::1]", "[3fff::1]", "[100::1]"),
    # IPv4 in IPv6
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]"),
    *("[::127.0.0.1]", "[::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]"),
    *("[64:ff9b:1::10.0.0.1]", "[64:ff9b:1::8.8.8.8]", "[2002:7f00:1::]", "[2002:a00:1::1]"),
    *("[2002:a9fe:a9fe::]", "[2001:0:7f00:1::]", "[2607:f8b0::5efe:127.0.0.1]"),
    "[2607:f8b0::200:5efe:10.0.0.1]",
]


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_are_not_public_in_any_spelling(host):
    """M195: sixty shapes and more of addresses that are refused."""
    address = parse_ip(parse_address(f"http://{host}/").host)
    assert address is not None
    assert not is_public(address)


def test_there_are_sixty_private_shapes():
    assert len(set(PRIVATE)) >= 60


@pytest.mark.parametrize(
    "text",
    [
        *("1.1.1.1", "8.8.8.8", "172.32.0.1", "172.15.255.255", "100.63.0.1", "100.128.0.1"),
        *("192.167.0.1", "169.253.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1"),
        *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2607:f8b0::5efe:8.8.8.8"),
    ],
)
def test_addresses_of_the_internet_are_public(text):
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTPS://Example.ORG", "https://example.org/"),
        ("https://example.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:8080", "http://example.org:8080/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/ä"),
        ("http://x.org//evil.example/a", "http://x.org//evil.example/a"),
        ("http://[2606:4700:0:0::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("  https://x.org/a\n", "https://x.org/a"),
        ("http://face.dead/", "http://face.dead/"),
    ],
)
def test_an_address_has_one_spelling(text, url):
    assert parse_address(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        *("", "x.org", "//x.org", "ftp://x.org/", "file:///etc/passwd", "javascript:alert(1)"),
        *("https://user@x.org/", "https://user:pass@x.org/", "http://x.org\\@10.0.0.1/"),
        *("http:///path", "http://x..org/", "http://x.org:99999/", "http://[::1/", "http://a b/"),
        *("http://ex%61mple.org/", "http://-x.org/", "data:text/html,x", "gopher://x.org"),
        "https://x.org/" + "a" * 9000,
    ],
)
def test_what_is_no_address_of_the_web_is_refused(text):
    with pytest.raises(InvalidAddress):
        parse_address(text)


def test_an_address_with_a_scope_is_not_public():
    assert not is_public(ip_address("fe80::1%eth0"))
