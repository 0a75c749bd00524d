package audit_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"runloop.dev/rlp/internal/record/audit"
)

// A glance sees of a record what decoding it gives, and of anything else nothing.
func TestGlanceIsTheRecord(t *testing.T) {
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	text := rapid.String()
	rapid.Check(t, func(t *rapid.T) {
		r := audit.Record{
			Seq: rapid.Uint64().Draw(t, "seq"), RunSeq: rapid.Uint64Range(0, 1<<20).Draw(t, "run_seq"),
			Time: time.UnixMilli(rapid.Int64Range(0, 1<<50).Draw(t, "ms")),
			Head: audit.Head{
				RunID: text.Draw(t, "run"), TraceID: "t", Agent: text.Draw(t, "agent"),
				ParentRun: rapid.SampledFrom([]string{"", "p"}).Draw(t, "parent"), BundleDigest: "b",
			},
		}
		if rapid.Bool().Draw(t, "decision") {
			r.Decision = &audit.DecisionRecord{
				Cap: text.Draw(t, "cap"), Op: text.Draw(t, "op"), Target: text.Draw(t, "target"), Deny: rapid.Bool().Draw(t,
					"deny"),
				Tool: text.Draw(t, "tool"), Layer: text.Draw(t, "layer"), Reason: text.Draw(t, "reason"),
				Severity: audit.Severity(rapid.IntRange(0, 2).Draw(t, "severity")),
			}
		} else {
			r.Event = &audit.Event{
				Kind: audit.KindRunStart, Base: []string{"a", "b"}, LimitsSummary: map[string]int64{"x": -5},
				DurationMS: 1.5,
			}
		}
		p, err := codec.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		var g audit.Glance
		if err := g.Read(p); err != nil {
			t.Fatal(err)
		}
		if g.Seq != r.Seq || g.RunSeq != r.RunSeq || g.UnixMS != r.Time.UnixMilli() || string(g.Run) != r.Head.RunID ||
			string(g.Agent) != r.Head.Agent || string(g.Bundle) != "b" {
			t.Fatalf("%+v\n%+v", g, r)
		}
		if string(g.Stored) != string(p) || r.Event != nil && string(g.Kind) != r.Event.Kind {
			t.Fatalf("%+v", g)
		}
		if d := r.Decision; g.Decided != (d != nil) || d != nil && (g.Deny != d.Deny || string(g.Cap) != d.Cap ||
			string(g.Op) != d.Op ||
			string(g.Target) != d.Target || string(g.Tool) != d.Tool || string(g.Layer) != d.Layer ||
			string(g.Reason) != d.Reason) {
			t.Fatalf("%+v\n%+v", g, d)
		}
		if err := g.Read(p[:rapid.IntRange(0, len(p)-1).Draw(t, "cut")]); err == nil {
			t.Fatal("half a record is read")
		}
		if err := g.Read(append(p, 0)); err == nil {
			t.Fatal("more than a record is read")
		}
	})
}

// Whatever is there instead of a record ends the reading, soon and without harm.
func FuzzGlance(f *testing.F) {
	f.Add([]byte{0xa1, 0x05, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x01})
	f.Fuzz(func(t *testing.T, p []byte) {
		var g audit.Glance
		if err := g.Read(p); err == nil && len(g.Target) > len(p) {
			t.Error("more than there is")
		}
	})
}
