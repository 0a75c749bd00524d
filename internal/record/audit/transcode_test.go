package audit

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawHead(t *rapid.T) Head {
	text := rapid.OneOf(rapid.StringMatching(`[a-z0-9/:._-]{0,40}`), rapid.String())
	return Head{
		RunID: text.Draw(t, "run"), TraceID: text.Draw(t, "trace"), Tenant: "default", Agent: text.Draw(t, "agent"),
		ParentRun: rapid.SampledFrom([]string{"", "0193"}).Draw(t, "parent"), BundleDigest: text.Draw(t, "bundle"),
		EffectiveDigest: "b3:00",
	}
}

func drawRecord(t *rapid.T, head Head) Record {
	text := rapid.OneOf(rapid.StringMatching(`[a-z0-9/:._-]{0,40}`), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
		func(p []byte) string { return string(p) }),
		rapid.SampledFrom([]string{"", "a\u2028b", "<&>", "\x7f", "\x00\n\t\b", `"\`, "\xff"}))
	severity := rapid.Map(rapid.Uint8Range(0, 2), func(n uint8) Severity { return Severity(n) })
	r := Record{
		Seq: rapid.Uint64().Draw(t, "seq"), RunSeq: rapid.Uint64().Draw(t, "run_seq"), Head: head,
		Time: time.UnixMilli(rapid.OneOf(rapid.Int64Range(0, 4e12), rapid.Int64Range(-1<<52, 1<<52)).Draw(t, "ms")),
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		d := &DecisionRecord{
			Tool: text.Draw(t, "tool"), Label: text.Draw(t, "label"), Cap: text.Draw(t, "cap"), Op: text.Draw(t, "op"),
			Target: text.Draw(t, "target"),
			Deny:   rapid.Bool().Draw(t, "deny"), Severity: severity.Draw(t, "severity"), Reason: text.Draw(t, "reason"),
			Layer: text.Draw(t, "layer"),
		}
		copy(d.ArgsHash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "args"))
		r.Decision = d
	case 1:
		r.Event = &Event{
			Kind: KindCallDone, Severity: severity.Draw(t, "severity"), Verb: text.Draw(t, "verb"),
			Status: text.Draw(t, "status"),
			DurationMS: rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e5),
				rapid.SampledFrom([]float64{
					0, 0.5, 1e-7, -1e-9, 1e21, 5e-324, math.MaxFloat64, math.NaN(), math.Inf(-1), 65504,
					6e-8, -1.5, math.Copysign(0, -1),
				})).Draw(t, "duration"),
			Bytes: rapid.Int64().Draw(t, "bytes"), ResultHash: text.Draw(t, "result"), ErrorSummary: text.Draw(t, "summary"),
		}
	default:
		r.Event = &Event{
			Kind: rapid.SampledFrom([]string{
				KindRunStart, KindCapsSwap, KindRunComplete, KindRunFailed,
				KindPolicyRejected,
			}).Draw(t, "event"),
			Severity: severity.Draw(t, "severity"), Base: []string{text.Draw(t, "base")}, Message: text.Draw(t, "message"),
			LimitsSummary: map[string]int64{"b": 1, "a": -2}, Usage: map[string]int64{text.Draw(t, "usage"): 3, "z": 4},
			Layers: []Layer{{
				Name: text.Draw(t, "layer"),
				Deny: []LayerEntry{{Family: "fs", Modes: 1, Scope: text.Draw(t, "scope")}},
			}},
		}
	}
	return r
}

// A line is what decoding and encoding again gives, to the byte, whatever came before it.
func TestTranscoderIsTheCodec(t *testing.T) {
	codec, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := NewTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	fast := 0
	rapid.Check(t, func(t *rapid.T) {
		head := drawHead(t)
		for range rapid.IntRange(1, 3).Draw(t, "records") {
			r := drawRecord(t, head)
			stored, err := codec.Encode(&r)
			if err != nil {
				t.Fatal(err)
			}
			back, err := codec.Decode(stored)
			if err != nil {
				t.Fatal(err)
			}
			want, err := back.AppendJSON([]byte("before "))
			if err != nil {
				t.Fatal(err)
			}
			got, err := lines.AppendLine([]byte("before "), stored)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
			}
			if v := (&view{}); v.read(stored) {
				fast++
			}
		}
	})
	if fast == 0 {
		t.Error("every record went the long way")
	}
}

// Whatever is read is what the codec reads, and nothing else is.
func FuzzTranscoder(f *testing.F) {
	codec, err := NewCodec()
	if err != nil {
		f.Fatal(err)
	}
	r := example()
	done := Record{Seq: 1, RunSeq: 2, Head: exampleHead(), Event: &Event{
		Kind: KindCallDone, Verb: "kb_get", Status: "ok",
		DurationMS: 0.1, Bytes: -1,
	}}
	for _, r := range []*Record{&r, &done} {
		p, err := codec.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		lines, err := NewTranscoder()
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := lines.AppendLine(nil, stored)
		back, err := codec.Decode(stored)
		var want []byte
		if err == nil {
			want, err = back.AppendJSON(nil)
		}
		if (err != nil) != (gotErr != nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%v, %v\ngot  %s\nwant %s", gotErr, err, got, want)
		}
	})
}

// The lines of every kind of record are what they have always been: the trees
// of all logs hang on it. A line of this file is never changed.
func TestLinesForEver(t *testing.T) {
	layer := Layer{
		Name: "override:writer.toml", Because: "x", File: "/f", Bounds: []LayerEntry{{Family: "fs", Modes: 3}},
		Allow: []LayerEntry{{
			Family: "net", Modes: 1, Scope: "a\"b", File: "/g", Line: 2, Column: 3, Expires: 4, MaxUses: 5,
			Implied: true,
		}},
		Deny:   []LayerEntry{{Family: "kb_read", Modes: 1, Scope: "x"}},
		Spare:  []LayerEntry{{Family: "env", Modes: 1, Scope: "PATH"}},
		Limits: map[string]int64{"b": 2, "a": 1}, Leases: []LayerEntry{{Family: "fs", Modes: 1, Scope: "/l"}},
		Constraints: map[string]int64{"net.x": 1}, Left: true,
	}
	plain := example()
	plain.Decision.Tool, plain.Decision.Label, plain.Decision.Layer, plain.Decision.Deny, plain.Head.ParentRun = "", "",
		"", false, ""
	strange := example()
	strange.Decision.Target = "\xff\u2028\x00<&>\x7f\"\\\ttab é 😀"
	records := []Record{example(), plain, strange}
	for _, e := range []Event{
		{
			Kind: KindRunStart, Base: []string{"fs:read:/a"}, Effective: []string{"fs:read:/a"},
			Except: []string{"fs:read:/a/b"}, LimitsSummary: map[string]int64{"wall_time_ms": 1, "cpu_fuel": 0},
			PolicyPresent: true, Layers: []Layer{layer}, Floor: &layer,
		},
		{Kind: KindRunStart},
		{
			Kind: KindCallDone, Severity: Error, Verb: "net_http", Status: "error", DurationMS: 0.1, Bytes: 5, ResultHash: "aa",
			ErrorSummary: "gone",
		},
		{Kind: KindCallDone, Verb: "kb_get", Status: "ok", DurationMS: 1e-7, Bytes: 1 << 40},
		{
			Kind: KindCapsSwap, Severity: Warn, Source: "_untrusted", Label: "fs:/downloads/a", Before: "b3:1", After: "b3:2",
			Layers: []Layer{layer},
		},
		{Kind: KindRunComplete, Outcome: "ok", Usage: map[string]int64{"fuel": 3, "allowed": 1}},
		{Kind: KindRunFailed, Severity: Error, Outcome: "trap", ExitCode: 1, Reason: "killed", Message: "a\nb"},
		{Kind: KindPolicyRejected, Severity: Warn, Outcome: "refused", ExitCode: 77, Violations: []string{"fs:write:/x"}},
	} {
		records = append(records, Record{
			Seq: 1<<63 + 1, RunSeq: 9, Time: time.UnixMilli(1767323045007), Head: exampleHead(),
			Event: &e,
		})
	}
	codec, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := NewTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for _, r := range records {
		stored, err := codec.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err = lines.AppendLine(got, stored); err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
	}
	want, err := os.ReadFile(filepath.Join("testdata", "lines.jsonl"))
	if err != nil || string(got) != string(want) {
		t.Errorf("%v; got:\n%s", err, got)
	}
}

func BenchmarkLine(b *testing.B) {
	codec, err := NewCodec()
	if err != nil {
		b.Fatal(err)
	}
	r := example()
	r.Head.RunID, r.Head.BundleDigest, r.Head.EffectiveDigest = "0194d2c4-7f1e-7000-8000-000000000000", "sha256:"+
		strings.Repeat("a", 64), "b3:"+strings.Repeat("b", 64)
	stored, err := codec.Encode(&r)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("transcoder", func(b *testing.B) {
		lines, err := NewTranscoder()
		if err != nil {
			b.Fatal(err)
		}
		var p []byte
		for b.Loop() {
			if p, err = lines.AppendLine(p[:0], stored); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(p)), "bytes/line")
	})
	b.Run("codec", func(b *testing.B) {
		for b.Loop() {
			r, err := codec.Decode(stored)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.AppendJSON(nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
