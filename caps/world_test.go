package caps_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// A pick chooses one of n; where the choice comes from (a seeded generator, the
// bytes of a fuzzer) is its own affair.
type pick func(n int) int

func seeded(seed uint64) pick {
	r := rand.New(rand.NewPCG(seed, 2))
	return func(n int) int { return r.IntN(n) }
}

// bytewise takes its choices from data, and 0 for ever after.
func bytewise(data []byte) pick {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b % n
	}
}

func one(p pick, list ...string) string { return list[p(len(list))] }

var (
	hosts   = []string{"a.x.org", "b.x.org", "x.org", "a.b.x.org", "y.org", "localhost", "10.1.2.3", "[::1]"}
	ports   = []string{":443", ":80", ":8443"}
	domains = []string{"contacts", "artifacts", "events", "drafts"}
	ids     = []string{"runloop/mail/key", "runloop/mail/key2", "runloop/m/key"}
)

func (p pick) path() string {
	var b strings.Builder
	for range p(7) {
		b.WriteString("/" + one(p, "a", "b", "tmp", "tmpfoo"))
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

func (p pick) host() string { return one(p, hosts...) + one(p, ports...) }

func (p pick) hostScope() string {
	if p(4) == 0 {
		return one(p, "*.x.org", "*.b.x.org", "*.org") + one(p, ports...)
	}
	return p.host()
}

func (p pick) name(f caps.Family, m caps.Mode) string {
	switch f {
	case caps.FS:
		return p.path()
	case caps.Net:
		return p.host()
	case caps.Time:
		return "*"
	case caps.KBRead:
		return one(p, append([]string{"contacts_raw", "events_raw", "other"}, domains...)...)
	case caps.KBWrite:
		return one(p, append([]string{"other"}, domains...)...)
	case caps.Secrets:
		if m == caps.Use {
			return one(p, ids...) + one(p, "", "@"+p.host(), "@"+p.host())
		}
		return one(p, ids...)
	case caps.Model:
		return one(p, "openai:gpt-4o", "openai:o3", "local:echo", "echo", "local:a:b")
	case caps.Exec:
		return one(p, "/usr/bin/grep", "/bin/sh", "/usr/bin", "/x")
	case caps.Env:
		return one(p, "PATH", "HOME", "path")
	case caps.MCP:
		return one(p, "github", "git")
	case caps.Tool:
		return one(p, "web:net_http", "memory:kb_put", "memory:kb_get", "mcp:x/y", "tools:opt")
	}
	return one(p, "critic", "writer")
}

func (p pick) scope(f caps.Family) string {
	if f != caps.FS && p(5) == 0 {
		return "*"
	}
	switch f {
	case caps.Net:
		return p.hostScope()
	case caps.Secrets:
		if p(2) == 0 {
			return one(p, ids...) + "@" + p.hostScope()
		}
	case caps.Model:
		if p(3) == 0 {
			return one(p, "openai:*", "local:*")
		}
	case caps.KBRead:
		return one(p, append([]string{"contacts_raw"}, domains...)...)
	}
	return p.name(f, caps.Get)
}

func (p pick) family() caps.Family {
	// the families with a tree are worth more tries
	return []caps.Family{
		caps.FS, caps.FS, caps.FS, caps.Net, caps.Net, caps.Secrets, caps.Secrets, caps.Model, caps.KBRead,
		caps.Time, caps.KBWrite, caps.Exec, caps.Env, caps.MCP, caps.Agents,
	}[p(15)]
}

func (p pick) modes(f caps.Family) caps.ModeSet {
	if p(2) == 0 {
		return caps.AllModes(f)
	}
	m := caps.ModeSet(p(1<<17)) & caps.AllModes(f)
	if m == 0 {
		return 1
	}
	return m
}

func (p pick) grant(f caps.Family) caps.Grant {
	return caps.Grant{Family: f, Modes: p.modes(f), Scope: p.scope(f)}
}

func (p pick) entries(most int) []caps.Entry {
	var list []caps.Entry
	for range p(most + 1) {
		list = append(list, caps.Entry{Grant: p.grant(p.family())})
	}
	return list
}

func (p pick) limits() caps.Limits {
	var l caps.Limits
	for range p(4) {
		v := []int64{0, 1, 2, 1 << 40}[p(4)]
		l = l.With(caps.Limit(p(int(caps.NumLimits))), v)
	}
	return l
}

// layer makes a random layer: bounds with what they allow, denies, spares.
func (p pick) layer(name string) *caps.Layer {
	l := &caps.Layer{Name: name, Limits: p.limits()}
	for range p(4) {
		f := p.family()
		l.Bounds = append(l.Bounds, caps.Bound{Family: f, Modes: p.modes(f)})
		for range p(4) {
			l.Allow = append(l.Allow, caps.Entry{Grant: p.grant(f)})
		}
	}
	if p(3) > 0 {
		l.Deny, l.Spare = p.entries(3), p.entries(2)
	}
	if p(3) == 0 {
		p.terms(l)
	}
	return l
}

// terms adds what is no scope of a family: tools, constraints and leases.
func (p pick) terms(l *caps.Layer) {
	tool := func() caps.Entry {
		return caps.Entry{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: one(p, "*", "web:*", "web:net_http",
			"memory:kb_put", "mcp:x/y")}}
	}
	if p(2) == 0 {
		l.Bounds = append(l.Bounds, caps.Bound{Family: caps.Tool, Modes: 1})
		l.Allow = append(l.Allow, tool(), tool())
	}
	if p(2) == 0 {
		l.Deny = append(l.Deny, tool())
	}
	for range p(3) {
		l.Constraints = l.Constraints.With(caps.Constraint(p(int(caps.NumConstraints))), int64(p(4)))
	}
	for range p(3) {
		f := p.family()
		lease := caps.Lease{Entry: caps.Entry{Grant: p.grant(f)}, Expires: int64(p(1000)), MaxUses: int64(p(5))}
		l.Leases = append(l.Leases, lease)
	}
}

func (p pick) request() caps.Request {
	f := p.family()
	if p(12) == 0 {
		f = caps.Tool
	}
	modes := []caps.Mode{caps.FS: 3, caps.Net: 17, caps.Secrets: 2, caps.Tool: 0}[f]
	m := caps.Mode(0)
	if modes > 0 {
		m = caps.Mode(p(int(modes)))
	}
	r := caps.Request{Family: f, Mode: m, Name: p.name(f, m)}
	if p(16) == 0 { // not always well-formed
		r.Name = one(p, r.Name+"/", r.Name+"/..", "/"+r.Name, strings.ToUpper(r.Name), r.Name+"\x00", "", r.Name+".",
			"a"+r.Name, r.Name+":1")
	}
	return r
}

type stack struct {
	oracle
	base caps.Set
	set  caps.Set
}

// tester is what of testing.TB both it and rapid have.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (p pick) stack(t tester, layers int) stack {
	t.Helper()
	s := stack{oracle: oracle{base: p.entries(8)}}
	s.base = mustBase(t, s.oracle.base, p.limits())
	s.set = s.base
	for i := range p(layers + 1) {
		l := p.layer(string(rune('a' + i)))
		s.oracle.layers = append(s.oracle.layers, l)
		s.set = narrow(t, s.set, l)
	}
	return s
}

func mustBase(t tester, entries []caps.Entry, l caps.Limits) caps.Set {
	t.Helper()
	s, err := caps.Base(entries, l)
	if err != nil {
		t.Fatalf("Base: %v", err)
	}
	return s
}

func narrow(t tester, s caps.Set, layers ...*caps.Layer) caps.Set {
	t.Helper()
	for _, l := range layers {
		var err error
		if s, _, err = s.Narrow(l); err != nil {
			t.Fatalf("Narrow: %v", err)
		}
	}
	return s
}

// set is the base of capability strings.
func set(t testing.TB, capabilities ...string) caps.Set {
	t.Helper()
	return mustBase(t, entries(t, capabilities...), caps.Limits{})
}

func entries(t testing.TB, capabilities ...string) []caps.Entry {
	t.Helper()
	var list []caps.Entry
	for _, c := range capabilities {
		g, err := caps.ParseGrant(c)
		if err != nil {
			t.Fatalf("ParseGrant: %v", err)
		}
		list = append(list, caps.Entry{Grant: g})
	}
	return list
}

func denies(t testing.TB, capabilities ...string) []caps.Entry {
	t.Helper()
	var list []caps.Entry
	for _, c := range capabilities {
		grants, err := caps.ParseDeny(c)
		if err != nil {
			t.Fatalf("ParseDeny: %v", err)
		}
		for _, g := range grants {
			list = append(list, caps.Entry{Grant: g})
		}
	}
	return list
}

// bounds is a layer that restricts families to capabilities.
func bounds(t testing.TB, families []caps.Family, capabilities ...string) *caps.Layer {
	t.Helper()
	l := &caps.Layer{Name: "override", Allow: entries(t, capabilities...)}
	for _, f := range families {
		l.Bounds = append(l.Bounds, caps.Bound{Family: f, Modes: caps.AllModes(f)})
	}
	return l
}

// allowed reports whether s allows every request that the capability stands for.
func allowed(t testing.TB, s caps.Set, capability string) bool {
	t.Helper()
	list, err := caps.ParseRequest(capability)
	if err != nil || len(list) == 0 {
		t.Fatalf("ParseRequest(%q): %v, %v", capability, list, err)
	}
	for _, r := range list {
		if !s.Check(r).Allow {
			return false
		}
	}
	return true
}
