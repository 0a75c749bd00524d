package gate

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// A recorder makes the records of a run. Once one cannot be made it keeps why, and
// makes no more.
type recorder struct {
	err  error
	sink audit.Sink

	keepAllowed, keepDenied bool
	durability              audit.Durability
	disk                    barriers
	names                   names
	rec                     audit.Decision // the record being made; here, so that making one allocates nothing
}

func newRecorder(sink audit.Sink, opt *Options) recorder {
	return recorder{
		sink: sink, keepAllowed: opt.KeepAllowed, keepDenied: opt.KeepDenied, durability: opt.Durability,
		disk: barriersOf(opt.Durability),
	}
}

// maxMode is the highest mode that may have an audit name of its own.
const maxMode = caps.Delete

// names are the words that a decision can be made of, interned at the start so
// that no call pays for it.
type names struct {
	caps    [caps.Tool + 1][maxMode + 1]audit.Name // the name of the last mode stands for all after it
	reasons []audit.Name
}

func (w *recorder) internWords() error {
	w.names.reasons = make([]audit.Name, caps.NumCodes)
	for c := range w.names.reasons {
		n, err := w.sink.Intern(caps.Code(c).String())
		if err != nil {
			return err
		}
		w.names.reasons[c] = n
	}
	for f := range caps.Tool + 1 {
		for m := range w.names.caps[f] {
			n, err := w.sink.Intern(caps.AuditName(f, caps.Mode(m)))
			if err != nil {
				return err
			}
			w.names.caps[f][m] = n
		}
	}
	return nil
}

// recorded is d once its record is as safe as it has to be. Without a record the
// request is denied, and the gate stays shut.
func (g *Gate) recorded(op *Op, r *caps.Request, d caps.Decision, target string, args *[32]byte) (
	caps.Decision, audit.Mark,
) {
	var mark audit.Mark
	if g.err == nil {
		g.rec.Target, g.rec.Args = target, args
		var err error
		if mark, err = g.record(g.now.Load(), op, r, &d); err != nil {
			g.err = fmt.Errorf("recording %s: %w", op.text, err)
		}
	}
	if g.err != nil {
		return caps.Decision{Code: caps.AuditUnavailable}, 0
	}
	if g.disk[r.Family].Has(r.Mode) {
		d = g.barrier(op, d)
	}
	return d, mark
}

// record sets every other field of the one record that there is, so that making it
// neither allocates nor clears what is written again at once.
func (w *recorder) record(h *holding, op *Op, r *caps.Request, d *caps.Decision) (audit.Mark, error) {
	rec := &w.rec
	rec.Cap, rec.Op, rec.Reason = w.names.caps[r.Family][min(r.Mode, maxMode)], op.name, w.names.reasons[d.Code]
	rec.Layer, rec.Tool, rec.Label = 0, op.tool, 0
	rec.Deny, rec.Severity, rec.Keep = false, audit.Info, w.keepAllowed
	if op.as != 0 {
		rec.Cap = op.as
	}
	if !d.Allow {
		rec.Deny, rec.Severity, rec.Keep = true, audit.Warn, w.keepDenied
		if d.Layer > 0 && int(d.Layer) < len(h.layers) {
			rec.Layer = h.layers[d.Layer]
			if h.floor > 0 && d.Layer >= h.floor {
				rec.Label = h.label
			}
		}
	}
	return w.sink.Decide(rec)
}

// Err is the error of the record that could not be written, nil while all is
// well. Once it is set every request is denied; the run must end.
func (w *recorder) Err() error { return w.err }

// A Note is a record that the runtime makes of its own: caps.empty, caps.extra,
// the environment that a guest was given.
type Note struct {
	Cap, Op, Target, Layer string
	Code                   caps.Code
	Allow                  bool
	// Always keeps the record in the knowledge base whatever the options say:
	// caps.empty and caps.extra are not silenced by audit_on_deny.
	Always bool
	// AtStart says that a language's own start asked: no severity, and counted nowhere.
	AtStart bool
}

// note records n; that it could not be does not end the run.
func (w *recorder) note(n Note) error {
	rec := audit.Decision{Target: n.Target, Reason: w.names.reasons[n.Code], Keep: w.keepAllowed}
	if !n.Allow {
		rec.Deny, rec.Severity, rec.Keep = true, audit.Warn, w.keepDenied
	}
	if n.AtStart {
		rec.Severity = audit.Info
	}
	rec.Keep = rec.Keep || n.Always
	err := w.internNote(&rec, n)
	if err == nil {
		_, err = w.sink.Decide(&rec)
	}
	if err != nil {
		return fmt.Errorf("recording %s: %w", n.Cap, err)
	}
	return nil
}

func (w *recorder) internNote(rec *audit.Decision, n Note) error {
	for _, word := range []struct {
		text string
		name *audit.Name
	}{{n.Cap, &rec.Cap}, {n.Op, &rec.Op}, {n.Layer, &rec.Layer}} {
		if word.text == "" {
			continue
		}
		name, err := w.sink.Intern(word.text)
		if err != nil {
			return err
		}
		*word.name = name
	}
	return nil
}

// barriers are the requests before which all that was recorded must be on disk,
// a bit for each mode of each family, so that a call that needs none pays for
// one test.
type barriers [caps.Tool + 1]caps.ModeSet

func barriersOf(d audit.Durability) (b barriers) {
	for f := range b {
		for m := range caps.Mode(32) {
			if d == audit.PerRecord || d == audit.PerEffect && caps.Acts(caps.Family(f), m) {
				b[f] |= 1 << m
			}
		}
	}
	return b
}

// barrier has the record of d on disk before the call goes on. A refusal has no
// effect, and is waited for only where every record is. When the disk fails the
// call is refused and the gate stays shut.
func (w *recorder) barrier(op *Op, d caps.Decision) caps.Decision {
	if !d.Allow && w.durability != audit.PerRecord {
		return d
	}
	if err := w.sink.Sync(); err != nil {
		w.err = fmt.Errorf("recording %s on disk: %w", op.text, err)
		return caps.Decision{Code: caps.AuditUnavailable}
	}
	return d
}
