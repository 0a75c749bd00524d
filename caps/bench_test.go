package caps_test

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/caps"
)

// many is a base of n six-component paths, in the way that a real tree has
// them: eight to a folder.
func many(tb testing.TB, n int) caps.Set {
	tb.Helper()
	list := make([]caps.Entry, n)
	for i := range list {
		list[i].Grant = caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: manyPath(i)}
	}
	return mustBase(tb, list, caps.Limits{})
}

func manyPath(i int) string {
	return fmt.Sprintf("/home/user%d/work/project%d/dir%d/part%d", i/8192, i/64, i/8, i)
}

func BenchmarkCheckName(b *testing.B) {
	s := set(b, "kb:read:contacts", "kb:read:events", "kb:read:artifacts")
	benchCheck(b, s, caps.Request{Family: caps.KBRead, Name: "artifacts"})
}

func BenchmarkCheckHost(b *testing.B) {
	s := set(b, "network:https:api.example.com", "network:https:*.example.org")
	benchCheck(b, s, caps.Request{Family: caps.Net, Name: "api.example.com:443"})
}

func BenchmarkCheckPath1000(b *testing.B) {
	benchCheck(b, many(b, 1000), caps.Request{Family: caps.FS, Mode: caps.Write, Name: manyPath(500)})
}

func BenchmarkCheckPath100000(b *testing.B) {
	benchCheck(b, many(b, 100_000), caps.Request{Family: caps.FS, Mode: caps.Write, Name: manyPath(50_000)})
}

// BenchmarkCheckPathSpread asks for another path each time, so that the caches
// are as cold as they are in a guest that walks a large tree.
func BenchmarkCheckPathSpread(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := many(b, n)
			asked := make([]caps.Request, 4096)
			for i := range asked {
				asked[i] = caps.Request{Family: caps.FS, Mode: caps.Write, Name: manyPath(i * 7919 % n)}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !s.Check(asked[i&4095]).Allow {
					b.Fatal("denied")
				}
			}
		})
	}
}

func BenchmarkCheckPathDenied(b *testing.B) {
	s := many(b, 1000)
	r := caps.Request{Family: caps.FS, Name: "/home/user1/work/project1/dir2/else"}
	b.ReportAllocs()
	for b.Loop() {
		if s.Check(r).Allow {
			b.Fatal("allowed")
		}
	}
}

func BenchmarkHolds(b *testing.B) {
	s := many(b, 1000)
	id := s.Check(caps.Request{Family: caps.FS, Name: manyPath(3)}).Scope
	b.ReportAllocs()
	for b.Loop() {
		if !s.Holds(id, caps.FS, caps.Write) {
			b.Fatal("not held")
		}
	}
}

func benchCheck(b *testing.B, s caps.Set, r caps.Request) {
	b.ReportAllocs()
	for b.Loop() {
		if !s.Check(r).Allow {
			b.Fatal("denied")
		}
	}
}

// hundred is a layer of 100 entries, most of them within a base of many.
func hundred() *caps.Layer {
	l := &caps.Layer{Name: "override", Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}}}
	for i := range 100 {
		g := caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: fmt.Sprintf("%s/sub%d", manyPath(i*9), i)}
		l.Allow = append(l.Allow, caps.Entry{Grant: g})
	}
	return l
}

// BenchmarkNarrow100 narrows a base of 100 grants by a layer of 100 entries
// that the universe does not have yet.
func BenchmarkNarrow100(b *testing.B) {
	benchNarrow(b, many(b, 100), hundred())
}

func BenchmarkNarrow100Of1000(b *testing.B) {
	benchNarrow(b, many(b, 1000), hundred())
}

// BenchmarkNarrowDeny is the narrowing of a running agent: a few denies that
// are interned already.
func BenchmarkNarrowDeny(b *testing.B) {
	l := &caps.Layer{Name: "taint", Deny: denies(b, "exec:*:*", "network:*:*", "fs:write:*")}
	s, err := many(b, 1000).Intern(l)
	if err != nil {
		b.Fatal(err)
	}
	benchNarrow(b, s, l)
}

func benchNarrow(b *testing.B, s caps.Set, l *caps.Layer) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Narrow(l); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest1000(b *testing.B) {
	s := many(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		s.Digest()
	}
}

func BenchmarkBase100000(b *testing.B) {
	list := make([]caps.Entry, 100_000)
	for i := range list {
		list[i].Grant = caps.Grant{Family: caps.FS, Modes: 1, Scope: manyPath(i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := caps.Base(list, caps.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	s := set(t, "fs:read:/home/user/notes", "network:https:api.example.com", "network:https:*.example.org",
		"network:http:get@[::1]", "kb:read:contacts", "secrets:read:runloop/a/b@api.example.com", "model:use:openai:*")
	for _, r := range []caps.Request{
		{Family: caps.FS, Name: "/home/user/notes/2026/01/02.md"},
		{Family: caps.FS, Name: "/etc/passwd"},
		{Family: caps.FS, Name: "/etc/../passwd"},
		{Family: caps.Net, Name: "api.example.com:443"},
		{Family: caps.Net, Name: "a.example.org:443"},
		{Family: caps.Net, Mode: 8, Name: "api.example.com:80"}, // http_not_permitted
		{Family: caps.Net, Mode: 9, Name: "[::1]:80"},           // method_not_permitted
		{Family: caps.Net, Name: "10.1.2.3:443"},
		{Family: caps.KBRead, Name: "contacts"},
		{Family: caps.KBRead, Name: "no such domain"},
		{Family: caps.Secrets, Mode: caps.Use, Name: "runloop/a/b@api.example.com:443"},
		{Family: caps.Model, Name: "openai:gpt-4o"},
		{Family: caps.Exec, Name: "/usr/bin/grep"},
		{Family: caps.Time, Name: "*"},
	} {
		if n := testing.AllocsPerRun(100, func() { s.Check(r) }); n != 0 {
			t.Errorf("%s: %v allocations", r, n)
		}
	}
}
