package analysis

import (
	"strings"

	"runloop.dev/rlp/caps"
)

// A Decision is what a record says of one decision. Its words may be views:
// they are never kept.
type Decision struct {
	Cap, Op, Target, Tool, Reason, Layer string
	Deny                                 bool
}

// A Doubt is what a record does not say of a request.
type Doubt uint8

// The doubts.
const (
	Exact   Doubt = iota // the record says it all
	Method               // the HTTP method: every one is considered
	Removal              // whether it was writing or removing: both are considered
	Name                 // what was named: cut, hidden, or not text
	Use                  // whether a secret's handle was asked for, or its value put in
)

// String is the doubt as a person is told of it; "" when there is none.
func (d Doubt) String() string {
	return [...]string{
		"", "depends on the method, which is not in the record",
		"the record does not say whether this was writing or removing",
		"the record does not hold the whole name", "the record does not say whether the secret was put in",
	}[min(d, Use)]
}

// An Ask is the request behind a record, as far as it is known: Name in one of
// Modes, with everything below it when Tree is set.
type Ask struct {
	Family caps.Family
	Modes  caps.ModeSet
	Name   string
	Tree   bool
	Doubt  Doubt
}

// A Reader finds the requests behind the records of one run, in their order.
// The zero Reader is at its beginning.
type Reader struct {
	moving string // the path that a rename moves
	step   int    // how many records of its source were read
}

// hidden stands in records for a secret that was denied.
const hidden = "secret"

// Ask is the request behind d; false when there is none, as for what was
// malformed, and for what the runtime notes of its own.
func (r *Reader) Ask(d *Decision) (Ask, bool) {
	f, ok := caps.AuditFamily(d.Cap)
	if !ok || d.Deny && d.Reason == caps.InvalidRequest.String() {
		return Ask{}, false
	}
	a := Ask{Family: f, Modes: 1, Name: d.Target}
	switch f {
	case caps.FS:
		r.path(&a, d)
	case caps.Net:
		if d.Tool != "" && caps.IsName(caps.Net, d.Target) { // what a tool declares has no scheme
			a.Modes, a.Doubt = caps.AllModes(caps.Net), Method
			return a, true
		}
		return a, a.url(d.Target)
	case caps.Time:
		a.Name = "*"
	case caps.KBRead, caps.KBWrite, caps.MCP:
		a.Name, _, _ = strings.Cut(d.Target, "/") // a key, a tool
	case caps.Secrets:
		return a, a.secret(d)
	}
	if a.Family != caps.Time && !known(d.Target) {
		a.Doubt = Name
	}
	return a, a.Doubt == Name || a.Family == caps.Time || caps.IsName(a.Family, a.Name)
}

// cutMark ends a target that was too long to be kept whole; replaced stands for
// bytes that are no text.
const (
	longest  = 8 << 10
	cutMark  = "…"
	replaced = "\uFFFD"
)

// known reports whether a target is the whole name of what was judged.
func known(target string) bool {
	switch {
	case len(target) >= longest-len(cutMark) && strings.HasSuffix(target, cutMark):
		return false
	case strings.Contains(target, replaced), strings.Contains(target, "secret runloop/"): // a value of a secret was there
		return false
	}
	return target != ""
}

// path finds the mode: the audit name tells reading from the rest, and the
// function removing from writing. A rename asks of its source for reading,
// writing and removing, in this order, and then of its target for writing.
func (r *Reader) path(a *Ask, d *Decision) {
	renames := d.Op == "path_rename"
	a.Tree = renames || d.Tool != ""
	if d.Cap == caps.AuditName(caps.FS, caps.Read) {
		if renames {
			r.moving, r.step = strings.Clone(d.Target), 1
		}
		return
	}
	a.Modes = caps.Modes(caps.Write)
	switch {
	case d.Op == "path_unlink_file" || d.Op == "path_remove_directory":
		a.Modes = caps.Modes(caps.Delete)
	case renames && r.step > 0 && r.step < 3 && r.moving == d.Target:
		if r.step++; r.step == 3 {
			a.Modes = caps.Modes(caps.Delete)
		}
	case renames && r.step != 3 || !strings.HasPrefix(d.Op, "path_") && !strings.HasPrefix(d.Op, "fd_"):
		a.Modes, a.Doubt = caps.Modes(caps.Write, caps.Delete), Removal
	}
}

// url finds scheme and host. Which method it was no record says.
func (a *Ask) url(target string) bool {
	scheme, rest, ok := strings.Cut(target, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if scheme == "tcp" {
		a.Modes, a.Name = caps.TCP, authority
		return ok && caps.IsHostPort(authority)
	}
	modes, err := caps.NetModes(scheme)
	if !ok || err != nil {
		return false
	}
	a.Modes, a.Doubt = modes, Method
	a.Name, err = caps.HostPort(scheme, authority)
	return err == nil
}

// secret tells asking for a handle from putting the value in. A denied request
// does not name its secret; a denied record that does is of a value that was
// taken out of something.
func (a *Ask) secret(d *Decision) bool {
	switch {
	case d.Target == hidden:
		a.Modes, a.Doubt = caps.AllModes(caps.Secrets), Name
		return true
	case d.Deny:
		return false
	case d.Tool != "" && !strings.Contains(d.Target, "@"): // for its headers, or for its program
		a.Modes, a.Doubt = caps.AllModes(caps.Secrets), Use
	case strings.Contains(d.Target, "@") || d.Op != "secret_handle":
		a.Modes = caps.Modes(caps.Use)
	default:
		a.Modes = caps.Modes(caps.Get)
	}
	return caps.IsName(caps.Secrets, d.Target)
}
