package caps_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// TestFamilyTable holds the words of the contract that derive from the table.
//
//rlp:holds C2 C3
func TestFamilyTable(t *testing.T) {
	want := []struct{ key, audit, audit1 string }{
		{"fs", "fs.read", "fs.write"},
		{"net", "net.http", "net.http"},
		{"time", "time.now", "time.now"},
		{"kb_read", "kb.read", "kb.read"},
		{"kb_write", "kb.write", "kb.write"},
		{"secrets", "secrets.get", "secrets.get"},
		{"model", "model.use", "model.use"},
		{"exec", "exec.spawn", "exec.spawn"},
		{"env", "env.read", "env.read"},
		{"mcp", "mcp.call", "mcp.call"},
		{"agents", "agent.launch", "agent.launch"},
	}
	if len(want) != int(caps.NumFamilies) {
		t.Fatalf("%d families, %d in the contract", caps.NumFamilies, len(want))
	}
	for f := range caps.NumFamilies {
		w := want[f]
		if f.String() != w.key || caps.AuditName(f, 0) != w.audit || caps.AuditName(f, 1) != w.audit1 {
			t.Errorf("%v: %q %q, want %+v", f, caps.AuditName(f, 0), caps.AuditName(f, 1), w)
		}
		if back, ok := caps.FamilyOf(w.key); !ok || back != f {
			t.Errorf("FamilyOf(%q) = %v, %v", w.key, back, ok)
		}
		if caps.AllModes(f) == 0 {
			t.Errorf("%v has no modes", f)
		}
	}
	if got := caps.AuditName(caps.FS, caps.Delete); got != "fs.write" {
		t.Errorf("deleting is recorded as %q", got)
	}
	if _, ok := caps.FamilyOf("FS"); ok || caps.AuditName(caps.NumFamilies+1, 0) != "" ||
		(caps.NumFamilies+1).String() != "unknown" {
		t.Error("what is no family has a name")
	}
}

func TestCodes(t *testing.T) {
	contract := "granted, cap_missing, path_not_permitted, host_not_permitted, http_not_permitted, " +
		"method_not_permitted, address_not_permitted, " +
		"domain_not_permitted, secret_not_permitted, secret_unknown, program_not_permitted, model_not_permitted, " +
		"server_not_permitted, " +
		"agent_not_permitted, not_in_base, not_confirmed, lease_expired, server_changed, route_not_permitted, server_name_mismatch, invalid_request, unavailable, " +
		"audit_unavailable, rate_limited, " +
		"budget_exhausted, untrusted_context, delegate_floor, caps_empty, tool_hidden"
	words := strings.Split(contract, ", ")
	seen := make(map[string]bool)
	for c := range caps.NumCodes {
		seen[c.String()] = true
		if text, err := c.MarshalText(); err != nil || string(text) != c.String() {
			t.Errorf("%d: %s, %v", c, text, err)
		}
	}
	for _, w := range words {
		if !seen[w] {
			t.Errorf("no code %s", w)
		}
	}
	if len(words) != int(caps.NumCodes) || len(seen) != len(words) || caps.NumCodes.String() != "unknown" {
		t.Errorf("%d codes, %d words, %d in the contract", caps.NumCodes, len(seen), len(words))
	}
	if d := (caps.Decision{}); d.Allow || d.Code == caps.Granted {
		t.Errorf("the zero decision: %+v", d)
	}
}

func TestNetModes(t *testing.T) {
	seen := make(map[caps.Mode]string)
	for _, scheme := range []string{"https", "http"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			m, ok := caps.NetMode(scheme, method)
			if !ok || seen[m] != "" {
				t.Errorf("%s %s: mode %d, %v, also %s", scheme, method, m, ok, seen[m])
			}
			seen[m] = scheme + " " + method
			if all, _ := caps.NetModes(scheme); !all.Has(m) {
				t.Errorf("%s %s is not in %v", scheme, method, all)
			}
		}
	}
	other, _ := caps.NetMode("https", "TRACE")
	for _, method := range []string{"get", "Get", "CONNECT", "PROPFIND"} {
		if m, ok := caps.NetMode("https", method); !ok || m != other {
			t.Errorf("%s: mode %d, %v; want %d", method, m, ok, other)
		}
	}
	for _, c := range [][2]string{{"ftp", "GET"}, {"HTTPS", "GET"}, {"https", ""}, {"https", "GET /"}, {"https", "GÉT"}} {
		if m, ok := caps.NetMode(c[0], c[1]); ok {
			t.Errorf("%v: mode %d", c, m)
		}
	}
	if set, err := caps.NetModes("http", "GET", "HEAD"); err != nil || set != 0x300 {
		t.Errorf("GET and HEAD over http: %#x, %v", set, err)
	}
	for _, c := range [][]string{{"https", "get"}, {"ftp"}, {"ftp", "GET"}} {
		if set, err := caps.NetModes(c[0], c[1:]...); err == nil || set != 0 {
			t.Errorf("%v: %#x, %v", c, set, err)
		}
	}
}

// TestLimits holds that 0 means none at all and a missing key no restriction.
func TestLimits(t *testing.T) {
	var none caps.Limits
	if _, set := none.Get(caps.WallTimeMS); set || len(none.Map()) != 0 {
		t.Errorf("the zero Limits bounds something: %v", none.Map())
	}
	a := none.With(caps.WallTimeMS, 10).With(caps.CPUFuel, 0).With(caps.ExecSpawns, 5)
	b := none.With(caps.WallTimeMS, 20).With(caps.CPUFuel, 7).With(caps.NetBytes, 3)
	for _, m := range []caps.Limits{a.Min(b), b.Min(a), a.Min(b).Min(a)} {
		want := map[string]int64{"wall_time_ms": 10, "cpu_fuel": 0, "exec_spawns": 5, "net_bytes": 3}
		if got := m.Map(); len(got) != len(want) {
			t.Errorf("%v, want %v", got, want)
		}
		for k, v := range want {
			if m.Map()[k] != v {
				t.Errorf("%s is %d, want %d", k, m.Map()[k], v)
			}
		}
	}
	if v, set := none.With(caps.ExecSpawns, -1).Get(caps.ExecSpawns); v != 0 || !set {
		t.Errorf("a negative limit is %d, %v", v, set)
	}
	if none.With(caps.NumLimits, 1) != none {
		t.Error("what is no limit was set")
	}
	if s := mustBase(t, nil, a); s.Limits() != a || narrow(t, s, &caps.Layer{Limits: b}).Limits() != a.Min(b) {
		t.Error("a set does not carry its limits")
	}
}

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		key     string
		value   int64
		limit   caps.Limit
		want    int64
		refusal string
	}{
		{key: "wall_time_ms", value: 5, limit: caps.WallTimeMS, want: 5},
		{key: "max_time_ms", value: 5, limit: caps.WallTimeMS, want: 5},
		{key: "max_adapter_calls", value: 5, limit: caps.HostcallsMax, want: 5},
		{key: "max_steps", value: 2, limit: caps.CPUFuel, want: 31_250},
		{key: "max_steps", value: 1 << 40, limit: caps.CPUFuel, want: caps.MaxCPUFuel},
		{key: "cpu_fuel", value: 0, limit: caps.CPUFuel, want: 0},
		{key: "cpu_fuel", value: math.MaxInt64, limit: caps.CPUFuel, want: caps.MaxCPUFuel},
		{key: "model_usd", value: 3, limit: caps.ModelUSD, want: 3_000_000},
		{key: "max_depth", value: math.MaxInt64, limit: caps.MaxDepth, want: math.MaxInt64},
		{key: "max_steps", value: math.MaxInt64, refusal: "too large"},
		{key: "model_usd", value: math.MaxInt64, refusal: "too large"},
		{key: "wall_time_ms", value: -1, refusal: "write 0 for none"},
		{key: "Wall_time_ms", value: 1, refusal: "unknown"},
		{key: "", value: 1, refusal: "unknown"},
	} {
		l, v, err := caps.ParseLimit(c.key, c.value)
		switch {
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("%s = %d: %v, want an error about %q", c.key, c.value, err, c.refusal)
		case c.refusal == "" && (err != nil || l != c.limit || v != c.want):
			t.Errorf("%s = %d: %v %d, %v; want %v %d", c.key, c.value, l, v, err, c.limit, c.want)
		}
	}
	for l := range caps.NumLimits {
		if back, _, ok := caps.LimitOf(l.String()); !ok || back != l {
			t.Errorf("LimitOf(%s) = %v, %v", l, back, ok)
		}
	}
}

// TestDigest holds that the digest is of what is allowed and nothing else.
//
//rlp:holds R34 R40 C26
func TestDigest(t *testing.T) {
	base := set(t, "net:x.org", "fs:read:/a", "kb:read:contacts")
	for name, other := range map[string]caps.Set{
		"order and spelling": set(t, "kb:read:contacts", "fs:read:/a/b/../", "network:https:X.org.:443", "fs:read:/a"),
		"covered entries":    set(t, "net:x.org", "fs:read:/a", "fs:read:/a/b", "kb:read:contacts"),
		"a deny of nothing":  narrow(t, base, &caps.Layer{Deny: denies(t, "fs:*:/elsewhere", "fs:write:/a/b", "exec:*:*")}),
		"a wider layer":      narrow(t, base, bounds(t, []caps.Family{caps.FS}, "fs:read:*")),
		"a spared deny":      narrow(t, base, &caps.Layer{Deny: denies(t, "fs:*:*"), Spare: denies(t, "fs:*:/a")}),
	} {
		if other.Digest() != base.Digest() {
			t.Errorf("%s: %v and %v differ", name, other, base)
		}
	}
	for name, other := range map[string]caps.Set{
		"nothing":  {},
		"less":     set(t, "net:x.org", "fs:read:/a"),
		"a hole":   narrow(t, base, &caps.Layer{Deny: denies(t, "fs:*:/a/b")}),
		"modes":    set(t, "net:x.org", "fs:write:/a", "kb:read:contacts"),
		"families": set(t, "net:x.org", "fs:read:/a", "kb:write:contacts"),
		"limits":   narrow(t, base, &caps.Layer{Limits: caps.Limits{}.With(caps.MaxDepth, 0)}),
	} {
		if other.Digest() == base.Digest() {
			t.Errorf("%s: %v and %v have one digest", name, other, base)
		}
	}
}

func TestScopes(t *testing.T) {
	s := set(t, "fs:read:/home/u", "fs:write:/home/u/out")
	d := s.Check(caps.Request{Family: caps.FS, Name: "/home/u/out/x"})
	if s.Scope(caps.FS, d.Scope) != "/home/u/out" || !s.InBase(caps.FS, d.Scope) || s.InBase(caps.FS, 0) {
		t.Errorf("%+v is %q", d, s.Scope(caps.FS, d.Scope))
	}
	up := s.Enclosing(caps.FS, d.Scope, func(id int32) bool { return s.Scope(caps.FS, id) == "/home/u" })
	if up != s.Parent(caps.FS, d.Scope) || s.Enclosing(caps.FS, up, func(int32) bool { return false }) != -1 {
		t.Errorf("enclosing: %d", up)
	}
	for _, id := range []int32{-1, 99} {
		if s.Scope(caps.FS, id) != "" || s.Parent(caps.FS, id) != -1 || s.InBase(caps.FS, id) ||
			s.Holds(id, caps.FS, caps.Read) {
			t.Errorf("scope %d is something", id)
		}
	}
	if s.Holds(d.Scope, caps.FS, caps.Mode(9)) || s.Holds(0, caps.NumFamilies+1, 0) || s.Any(caps.NumFamilies+1) ||
		s.NumScopes(caps.NumFamilies+1) != 0 {
		t.Error("what is no mode or family is held")
	}
	if s.NumLayers() != 1 || s.LayerName(-1) != "" || s.LayerName(1) != "" {
		t.Errorf("%d layers", s.NumLayers())
	}
}

// A family is asked for by its key, as policies and GET /capabilities have it, by what
// records call it, or by the beginning of that; another word is none, and says which
// there are.
func TestWordsForRecords(t *testing.T) {
	for word, want := range map[string]string{
		"fs": "fs", "fs.write": "fs.write", "net": "net.http", "kb_read": "kb.read", "kb_write": "kb.write", "kb": "kb",
		"agents": "agent.launch", "secrets": "secrets.get",
		"exec": "exec.spawn", "mcp": "mcp.call", "model": "model.use", "env": "env.read", "time": "time.now", "caps": "caps",
		"caps.empty": "caps.empty",
	} {
		if name, _, ok := caps.AuditWord(word); !ok || name != want {
			t.Errorf("%s: %q, want %s", word, name, want)
		}
	}
	for _, word := range []string{"", "kbread", "kb_reads", "FS", "fs.", "agent", "launch"} {
		if name, known, ok := caps.AuditWord(word); ok || name != "" || !slices.Contains(known, "agent.launch") ||
			!slices.IsSorted(known) {
			t.Errorf("%q: %q of %q", word, name, known)
		}
	}
}
