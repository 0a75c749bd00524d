package log

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// Who asks for small pages is given little at a time, and in the end the same.
func TestPagesAreAsSmallAsAsked(t *testing.T) {
	const records, page = 100, 8 << 10
	e := openLog(t, newPlace(t))
	j, err := journal.Create(journal.Options{Dir: e.log.opt.Journal, Head: audit.Head{
		RunID: "run1", Tenant: "default", Agent: "a",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range records {
		if _, err := j.Decide(&audit.Decision{Keep: true, Target: strings.Repeat("x", 1<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := wire.Ask(t.Context(), e, &ingestRequest{}); err != nil {
		t.Fatal(err)
	}
	for f, most := range map[Filter]int{
		{Run: "run1"}:             records,
		{Run: "run1", Page: page}: page >> 10,
		{Page: page}:              page >> 10,
		{Page: 1}:                 1,
	} {
		r := mustAsk(t, e, &pageRequest{Filter: f, From: 1, UpTo: records})
		if n := len(r.Records); n == 0 || n > most || r.More != (n < records) {
			t.Errorf("%+v: %d records at a time, more %t", f, n, r.More)
		}
		n := 0
		for _, err := range e.Audit(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != records {
			t.Errorf("%+v: %d records in all", f, n)
		}
	}
}
