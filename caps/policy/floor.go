package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// The built-in floors. Each is denied by the same table, [Dangers], and
// replaced by a file of its own.
const (
	Untrusted = "_untrusted" // once a run has read untrusted content
	Delegate  = "_delegate"  // for a delegate that no binding names
)

// IsFloor reports whether name is that of a built-in floor.
func IsFloor(name string) bool { return name == Untrusted || name == Delegate }

func because(floor string) caps.Code {
	if floor == Delegate {
		return caps.DelegateFloor
	}
	return caps.UntrustedContext
}

// BuiltinFloor is the floor of a name without any file.
func BuiltinFloor(name string) *caps.Layer {
	l := &caps.Layer{Name: name, Because: because(name)}
	at := caps.Pos{File: name + ".toml (built-in)"}
	for _, d := range Dangers() {
		for _, e := range d.Entries() {
			e.Pos = at
			l.Deny = append(l.Deny, e)
		}
	}
	return l
}

// ProgramFloor is the built-in floor [Untrusted] for programs that are agents: they
// start what they need as before, and a route to a trusted host stays open, for its
// answers mark no run. base is what such a program holds at most.
func ProgramFloor(base []caps.Entry, trusted []caps.Grant) *caps.Layer {
	l := BuiltinFloor(Untrusted)
	l.Deny = slices.DeleteFunc(l.Deny, func(e caps.Entry) bool {
		return e.Grant.Family == caps.Exec || strings.HasPrefix(e.Grant.Scope, "exec:") // exec_run, which programs do not have
	})
	for i := range l.Deny { // records have it whole, for its name alone stands for the one of guests
		l.Deny[i].Pos.File = Untrusted + ".toml (built-in, for programs)"
	}
	for _, e := range base {
		if e.Grant.Family != caps.Secrets {
			continue
		}
		id, _, _ := strings.Cut(e.Grant.Scope, "@")
		for _, t := range trusted {
			if t.Modes&caps.HTTPS != 0 { // a secret goes nowhere in plain HTTP
				l.Spare = append(l.Spare, caps.Entry{
					Grant: caps.Grant{Family: caps.Secrets, Modes: caps.AllModes(caps.Secrets), Scope: id + "@" + t.Scope},
					Pos:   l.Deny[0].Pos, Implied: true,
				})
			}
		}
	}
	return l
}

// Floor is the floor of a name: what file says, if it is the operator's own and
// says something, else the built-in one. This is the one place where a file
// that cannot be used does not refuse: to refuse would be to drop what it was
// written to loosen, and the built-in floor is at least as strict as anything
// that anybody meant. The warning is then why, for stderr and the log; it is
// empty where there is no file.
//
// A file that restricts nothing at all is no floor, and no mistake is taken for
// one: who wants none writes [deny] capabilities = [].
func Floor(name, file string, opt Options) (floor *caps.Layer, warning string) {
	return FloorOr(BuiltinFloor(name), file, opt)
}

// FloorOr is [Floor] with another built-in one.
func FloorOr(builtin *caps.Layer, file string, opt Options) (floor *caps.Layer, warning string) {
	layer, err := ownFloor(builtin.Name, file, opt)
	switch {
	case layer != nil:
		return layer, ""
	case err == nil:
		return builtin, ""
	}
	return builtin, fmt.Sprintf("the built-in floor %s applies, for %s is not used: %v", builtin.Name, file, err)
}

// ownFloor is the operator's floor; nil without an error where there is none.
func ownFloor(name, file string, opt Options) (*caps.Layer, error) {
	data, err := readOptional(file, opt)
	if data == nil && err == nil {
		err = misnamed(file, name)
	}
	if data == nil {
		return nil, err
	}
	p, findings := ParseProfile(name, file, data, opt)
	if err := AsError(findings); err != nil {
		return nil, err
	}
	p.Layer.Name, p.Layer.Because = name, because(name)
	return p.Layer, nil
}

// readOptional reads a file of the operator's; nil without an error where there
// is none, be it that the folder for it is not there either.
func readOptional(file string, opt Options) ([]byte, error) {
	data, err := tomlfile.ReadFile(file, 0)
	if err == nil {
		return data, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if opt.Stat != nil {
		if _, dirErr := opt.Stat(filepath.Dir(file)); errors.Is(dirErr, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return nil, err
}

func floorAbout(name string) string {
	if name == Delegate {
		return "What holds for an agent that another one launched and that no binding names."
	}
	return "What holds once a run has read untrusted content."
}

// FloorText is the built-in floor in the format of the file that replaces it,
// to copy and to edit.
func FloorText(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The built-in floor %s. Its copy in caps/profiles/%s.toml replaces it.\nschema_version = "+
		"\"1.0\"\nname = %q\ndescription = %q\n\n[deny]\ncapabilities = [\n",
		name, name, name, floorAbout(name))
	for _, d := range Dangers() {
		for _, f := range d.Families {
			for _, s := range (caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: "*"}).Strings() {
				fmt.Fprintf(&b, "  %-24s # %s\n", strconv.Quote(s)+",", d.About)
			}
		}
	}
	b.WriteString("]\ntools = [\n")
	for _, d := range Dangers() {
		for _, s := range d.scopes() {
			fmt.Fprintf(&b, "  %q,\n", s)
		}
	}
	b.WriteString("]\n")
	return b.String()
}
