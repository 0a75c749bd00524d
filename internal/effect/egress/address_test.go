package egress

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// Every kind of address is judged, at both ends of its block and in every
// disguise that leads to it.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		class class
		addrs []string
	}{
		{public, []string{
			"1.1.1.1", "93.184.215.14", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
			"128.0.0.0",
			"169.253.255.255", "168.63.129.15", "168.63.129.17", "169.255.0.0", "172.15.255.255", "172.32.0.0",
			"191.255.255.255", "192.0.1.0", "192.167.255.255", "192.169.0.0",
			"198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2000::", "2001:200::",
			"2003::", "3ffe::", "3fff:1000::",
			"64:ff9b::1.1.1.1", "::ffff:1.1.1.1",
		}},
		{special, []string{
			"127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
			"192.168.255.255",
			"100.64.0.0", "100.127.255.255", "192.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
			"198.18.0.0", "198.19.255.255",
			"::1", "fc00::", "fdff:ffff::1", "2001:db8::1", "3fff::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		}},
		{never, []string{
			"0.0.0.0", "0.255.255.255", "169.254.0.0", "169.254.169.254", "169.254.170.2", "169.254.255.255", "100.100.100.200",
			"192.0.0.192", "168.63.129.16",
			"224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255",
			"::", "::127.0.0.1", "::2", "fe80::1", "febf:ffff::1", "fec0::1", "ff00::", "ff02::1", "fd00:ec2::254",
			"fd20:ce::254",
			"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::192.0.2.1", "64:ff9b:1::127.0.0.1",
			"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002::", "2001::", "2001:0:7f00:1::", "2001:10::1", "2001:20::1",
			"2001:1ff:ffff::",
			"5f00::1", "100::1", "1000::", "4000::", "::ffff:0:127.0.0.1", "::ffff:169.254.169.254",
		}},
	} {
		for _, s := range c.addrs {
			if got, name := judge(netip.MustParseAddr(s)); got != c.class {
				t.Errorf("%s is %d (%s), want %d", s, got, name, c.class)
			}
		}
	}
	if got, name := judge(netip.Addr{}); got != never || name != "no address" {
		t.Errorf("no address is %d, %s", got, name)
	}
	if got, _ := judge(netip.MustParseAddr("fe80::1%eth0")); got != never {
		t.Errorf("with a zone: %d", got)
	}
}

// What the standard library knows as anything but a global address is never
// public here, however it is written.
func TestPublicIsGlobal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
		if rapid.Bool().Draw(t, "six") {
			a = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")))
		}
		got, _ := judge(a)
		u := a.Unmap()
		if got == public && (u.IsPrivate() || u.IsLoopback() || u.IsMulticast() || u.IsLinkLocalUnicast() ||
			u.IsUnspecified() || !u.IsGlobalUnicast()) {
			t.Fatalf("%s is public", a)
		}
		if a.Is4() {
			in6 := netip.AddrFrom16(a.As16())
			if mapped, _ := judge(in6); mapped != got {
				t.Fatalf("%s is %d, %s is %d", a, got, in6, mapped)
			}
			b := a.As4()
			nat := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
			if c, _ := judge(nat); (c == public) != (got == public) || c == special {
				t.Fatalf("%s is %d, %s is %d", a, got, nat, c)
			}
		}
	})
}

// A grant that names an address opens it, unless it is one that is never reached.
func TestVet(t *testing.T) {
	c := New(Config{})
	for _, v := range []struct {
		host          string
		named, denied bool
	}{
		{"127.0.0.1:80", true, false},
		{"127.0.0.1:80", false, true},
		{"localhost:80", true, false},
		{"localhost:80", false, true},
		{"[::1]:80", true, false},
		{"10.0.0.10:80", false, true}, // each last sign that an address can have
		{"10.0.0.19:80", false, true},
		{"[::a]:80", true, true},
		{"[fd00::a]:80", false, true},
		{"node1:80", false, false},
		{"[fe80::1]:80", true, true},
		{"169.254.169.254:80", true, true},
		{"1.1.1.1:443", false, false},
		{"api.example.com:443", false, false},
		{"foo.localhost:80", false, false}, // a name: its addresses are judged when it is resolved
	} {
		err := c.Vet(v.host, v.named)
		var address *AddressError
		if errors.As(err, &address) != v.denied {
			t.Errorf("%s, named %v: %v", v.host, v.named, err)
		}
	}
	for _, bad := range []string{"", "host", "host.:80", ":80"} {
		if c.Vet(bad, true) == nil {
			t.Errorf("%q is canonical", bad)
		}
	}
}

// An error names the address once where the host was written as one.
func TestAddressError(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.1")
	for host, want := range map[string]string{
		"10.0.0.1": "10.0.0.1 is private",
		"host":     "host is 10.0.0.1, which is private",
	} {
		if got := (&AddressError{Host: host, Addr: a, Name: "private"}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
