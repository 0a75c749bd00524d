package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func exampleHead() Head {
	return Head{
		RunID: "0194", TraceID: "t1", Tenant: "default", Agent: "writer", ParentRun: "0193",
		BundleDigest: "sha256:aa", EffectiveDigest: "sha256:bb",
	}
}

func example() Record {
	return Record{
		Seq: 7, RunSeq: 3, Time: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600)), Head: exampleHead(),
		Kept: true,
		Decision: &DecisionRecord{
			Tool: "send", Label: "_untrusted", Cap: "net.http", Op: "net_http", Target: "https://api.example.com/send?<&>",
			ArgsHash: [32]byte{0xab, 31: 1}, Deny: true, Severity: Warn, Reason: "host_not_permitted",
			Layer: "override:writer.toml",
		},
	}
}

// The exported form to the byte: the keys, their order, the time, the hash.
//
//rlp:holds R69
func TestDecisionJSON(t *testing.T) {
	r := example()
	got, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"kind":"cap.audit","seq":7,"ts":"2026-01-02T02:04:05.678Z","run_seq":3,"run_id":"0194","trace_id":"t1",` +
		`"tenant":"default","agent":"writer","parent_run":"0193","tool":"send","label":"_untrusted","cap":"net.http","op":"net_http",` +
		`"target":"https://api.example.com/send?<&>","args_hash":"ab` + strings.Repeat("00", 30) +
		`01","decision":"deny","severity":"warn",` +
		`"reason":"host_not_permitted","layer":"override:writer.toml","bundle_digest":"sha256:aa","effective_digest":"sha256:bb"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	through, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(through, &a) != nil || json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("json.Marshal says %s", through)
	}
}

// A decision has the properties that are always there, those that may be, and
// no others, with values of the stated form.
//
//rlp:holds R69
func TestDecisionProperties(t *testing.T) {
	always := []string{
		"v", "kind", "seq", "ts", "run_seq", "run_id", "trace_id", "tenant", "agent", "cap", "op", "target", "args_hash",
		"decision", "severity", "reason", "bundle_digest", "effective_digest",
	}
	maybe := []string{"parent_run", "tool", "label", "layer"}
	bare := Record{Decision: &DecisionRecord{}}
	full := example()
	for i, r := range []Record{bare, full} {
		p, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(p, &m); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(always)
		if i == 1 {
			want = append(want, maybe...)
		}
		for _, k := range want {
			if _, ok := m[k]; !ok {
				t.Errorf("record %d has no %s", i, k)
			}
		}
		if len(m) != len(want) {
			t.Errorf("record %d has %d properties, want %d: %s", i, len(m), len(want), p)
		}
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(m["args_hash"].(string)) ||
			!slices.Contains([]any{"allow", "deny"}, m["decision"]) || !slices.Contains([]any{"info", "warn", "error"},
			m["severity"]) {
			t.Errorf("record %d: %s", i, p)
		}
	}
}

// Every kind has the head and the fields that are its own.
func TestEventJSON(t *testing.T) {
	for kind, want := range map[string]string{
		KindRunStart:  `"base":[],"effective":["fs:read:/x"],"limits_summary":{"cpu_fuel":5},"policy_present":true`,
		KindCallDone:  `"verb":"kb_get","status":"error","duration_ms":0,"bytes":3,"result_hash":"aa","error_summary":"gone"`,
		KindCapsSwap:  `"source":"taint","before":"aa","after":"bb"`,
		KindRunFailed: `"outcome":"trap","exit_code":1,"reason":"killed","message":"a \"b\"\n","violations":["v"],"usage":{"fuel":1}`,
	} {
		e := &Event{
			Kind: kind, Severity: Error, Effective: []string{"fs:read:/x"}, LimitsSummary: map[string]int64{"cpu_fuel": 5},
			PolicyPresent: true,
			Verb:          "kb_get", Status: "error", DurationMS: math.NaN(), Bytes: 3, ResultHash: "aa", ErrorSummary: "gone",
			Source: "taint", Before: "aa", After: "bb",
			Outcome: "trap", ExitCode: 1, Reason: "killed", Message: "a \"b\"\n", Violations: []string{"v"},
			Usage: map[string]int64{"fuel": 1},
		}
		r := Record{Seq: 1, RunSeq: 1, Head: exampleHead(), Event: e, Time: time.UnixMilli(0)}
		got, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		full := `{"v":1,"kind":"` + kind +
			`","seq":1,"ts":"1970-01-01T00:00:00.000Z","run_seq":1,"run_id":"0194","trace_id":"t1","tenant":"default",` +
			`"agent":"writer","parent_run":"0193","severity":"error",` + want +
			`,"bundle_digest":"sha256:aa","effective_digest":"sha256:bb"}`
		if string(got) != full {
			t.Errorf("got  %s\nwant %s", got, full)
		}
	}
	for _, r := range []Record{{}, {Event: &Event{Kind: "made.up"}}} {
		if p, err := r.AppendJSON(nil); err == nil {
			t.Errorf("%+v is exported as %s", r, p)
		}
	}
}

// FuzzRecord: a record that was stored is read back as it was, and anything
// that is read is stored as the same bytes: there is one form.
func FuzzRecord(f *testing.F) {
	c, err := NewCodec()
	if err != nil {
		f.Fatal(err)
	}
	r := example()
	ev := Record{Seq: 1, RunSeq: 1, Head: exampleHead(), Event: &Event{
		Kind: KindRunStart, Base: []string{"a"},
		LimitsSummary: map[string]int64{"b": 1, "a": 2},
	}}
	for _, r := range []*Record{&r, &ev} {
		p, err := c.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p, "target", "\xff", int64(5))
	}
	f.Fuzz(func(t *testing.T, p []byte, target, reason string, ms int64) {
		r := example()
		r.Decision.Target, r.Decision.Reason, r.Time = target, reason, time.UnixMilli(ms).UTC()
		enc, err := c.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := c.Decode(enc)
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%+v became %+v: %v", r, back, err)
		}
		read, err := c.Decode(p)
		if err != nil {
			return
		}
		first, err := c.Encode(&read)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Decode(first)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := c.Encode(&again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("two forms of one record: %x %x %v", first, second, err)
		}
	})
}
