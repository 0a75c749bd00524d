package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"pgregory.net/rapid"
	"runloop.dev/rlp/internal/effect/netns"
)

// wildcard knows every name below example.org, and what it did not know.
type wildcard struct{ unknown, details, refused []string }

func (*wildcard) Knows(name string) bool { return strings.HasSuffix(name, ".example.org") }
func (w *wildcard) Unknown(name, detail string) {
	w.unknown, w.details = append(w.unknown, name), append(w.details, detail)
}
func (*wildcard) Ways(string) Ways { return 0 }
func (w *wildcard) Refuse(t Target, _ Refusal, detail string) {
	w.refused, w.details = append(w.refused, t.String()), append(w.details, detail)
}
func (*wildcard) Done(Target, Grant, End) {}

func (*wildcard) Decide(context.Context, Target) (Grant, error) { return Grant{}, errProtocol }

func newServer() (*Server, *wildcard) {
	w := &wildcard{}
	return &Server{cfg: Config{Policy: w}, names: newNames(), isIPv6: true}, w
}

// ask is the answer to a query for name, and its addresses.
func ask(t *testing.T, s *Server, name string, kind dnsmessage.Type) (dnsmessage.RCode, []netip.Addr) {
	t.Helper()
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{
			Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET,
		}},
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(s.answer(b)); err != nil || answer.ID != 7 || !answer.Response || len(answer.Questions) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	var addrs []netip.Addr
	for _, a := range answer.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			addrs = append(addrs, netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			addrs = append(addrs, netip.AddrFrom16(body.AAAA))
		}
	}
	return answer.RCode, addrs
}

// A granted name has an address of ours, which stands for it; another one has none.
// Nothing asks a resolver: a server has none.
func TestNames(t *testing.T) {
	s, w := newServer()
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		code, addrs := ask(t, s, "API.Example.ORG.", kind)
		if code != dnsmessage.RCodeSuccess || len(addrs) != 1 {
			t.Fatal(code, addrs)
		}
		if name, ok := s.names.name(addrs[0]); !ok || name != "api.example.org" {
			t.Errorf("%s stands for %q", addrs[0], name)
		}
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeTXT, dnsmessage.TypeMX, 65, dnsmessage.TypeALL} {
		if code, addrs := ask(t, s, "api.example.org.", kind); code != dnsmessage.RCodeSuccess || addrs != nil {
			t.Errorf("%s: %s, %v", kind, code, addrs)
		}
	}
	for _, name := range []string{
		"example.com.", "example.com.", "1.0.0.127.in-addr.arpa.", "localhost.", "127.1.", "a_b.example.com.", ".",
		"xn--0.example.org.", "a b.example.org.", "93.184.215.14.",
	} {
		if code, addrs := ask(t, s, name, dnsmessage.TypeA); code != dnsmessage.RCodeNameError || addrs != nil {
			t.Errorf("%s: %s, %v", name, code, addrs)
		}
	}
	if want := []string{"example.com", "1.0.0.127.in-addr.arpa", "localhost"}; !slices.Equal(w.unknown[:3], want) {
		t.Errorf("%q", w.unknown)
	}
	s.isIPv6 = false
	if code, addrs := ask(t, s, "api.example.org.", dnsmessage.TypeAAAA); code != dnsmessage.RCodeSuccess || addrs != nil {
		t.Errorf("without IPv6: %s, %v", code, addrs)
	}
	for _, b := range [][]byte{nil, {1}, make([]byte, 12), append([]byte{0, 7, 0x80, 0, 0, 1}, make([]byte, 11)...)} {
		if got := s.answer(b); got != nil {
			t.Errorf("%x is answered: %x", b, got)
		}
	}
}

// However many names are asked for, little is kept of them, and no address stands
// for two names: the policy is told of the first ones.
func TestManyNames(t *testing.T) {
	s, w := newServer()
	for i := range 10_000 {
		_, _ = ask(t, s, fmt.Sprintf("made-up-%d.example.com.", i), dnsmessage.TypeA)
	}
	if len(w.unknown) != mostTold {
		t.Errorf("the policy was told of %d", len(w.unknown))
	}
	for i, detail := range w.details {
		if want := i == mostTold-1; want != strings.Contains(detail, "not recorded one by one") || !want && detail != "" {
			t.Errorf("of number %d it was told %q", i, detail)
		}
	}
	first, _ := s.names.addresses("first.example.org")
	for i := range 2 * mostNames {
		_, _ = s.names.addresses(fmt.Sprintf("%d.example.org", i))
	}
	if name, ok := s.names.name(first); !ok || name != "" {
		t.Errorf("an address that was forgotten stands for %q", name)
	}
	if len(s.names.at) > mostNames {
		t.Errorf("%d are kept", len(s.names.at))
	}
	again, _ := s.names.addresses("first.example.org")
	if again == first {
		t.Error("a forgotten address is given out again at once")
	}
}

// Many names hide no datagram, many datagrams no connection to an address that stands for
// no name; and the last one of each kind that the policy is told of says that it is.
func TestManyOfOneKindHideNoOther(t *testing.T) {
	s, w := newServer()
	for i := range 2 * mostTold {
		_, _ = ask(t, s, fmt.Sprintf("made-up-%d.example.com.", i), dnsmessage.TypeA)
	}
	for i := range 2 * mostTold {
		s.stray(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i+1)))
	}
	for i := range 2 * mostTold {
		s.toNoName(nil, netip.AddrPortFrom(netip.MustParseAddr("198.18.9.9"), uint16(i+100)))
	}
	said := 0
	for _, detail := range w.details {
		said += strings.Count(detail, "not recorded one by one")
	}
	if len(w.unknown) != mostTold || len(w.refused) != 2*mostTold || said != 3 ||
		!slices.Contains(w.refused, "udp://192.0.2.1:1") || !slices.Contains(w.refused, "https://198.18.9.9:443") {
		t.Errorf("told of %d names and %d others, the end of %d", len(w.unknown), len(w.refused), said)
	}
}

// Each address stands for the name that it was last given for, or for none.
func TestNamesAreTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNames()
		n.next = rapid.Uint32Range(firstName, lastName).Draw(t, "next")
		given := map[netip.Addr]string{}
		for range 50 {
			name := fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "name"))
			v4, v6 := n.addresses(name)
			if !netns.Pool4.Contains(v4) || !netns.Pool6.Contains(v6) || v4 == netns.Own4 || v4 == netns.Resolver4 {
				t.Fatal(v4, v6)
			}
			given[v4], given[v6] = name, name
		}
		for a, want := range given {
			if got, ok := n.name(a); !ok || got != want {
				t.Fatalf("%s stands for %q, want %q", a, got, want)
			}
		}
		other := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "other")))
		if name, ok := n.name(other); ok != netns.Pool4.Contains(other) || name != "" && given[other] != name {
			t.Fatalf("%s: %q, %v", other, name, ok)
		}
	})
}

func FuzzQuery(f *testing.F) {
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName("api.example.org."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}
	b, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := newServer()
		var answer dnsmessage.Message
		if out := s.answer(b); out != nil && answer.Unpack(out) != nil {
			t.Fatalf("%x is answered by %x", b, out)
		}
	})
}
