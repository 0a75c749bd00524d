package ask

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/run"
)

// An Edit is one change of one document, or flag, that would change a decision
// together with the others that are listed with it.
type Edit struct {
	Layer string `json:"layer"`
	// Do is "remove", "add", "replace", "leave_out", or "nothing" where nothing can.
	Do     string   `json:"do"`
	What   string   `json:"what,omitempty"`
	Source caps.Pos `json:"source"`
	Text   string   `json:"text"`
}

// An editor finds the smallest set of edits by making them, in memory.
type editor struct {
	decision
	made []Edit
}

// edits are those that turn the decision around, and whether a plan with all of
// them was made and decides so.
func (x decision) edits() ([]Edit, bool) {
	ed := &editor{decision: x}
	ed.policy = run.Policy{
		Base: slices.Clone(x.policy.Base), BaseLimits: x.policy.BaseLimits, Within: x.policy.Within,
	}
	for _, l := range x.policy.Layers {
		c := *l
		ed.policy.Layers = append(ed.policy.Layers, &c)
	}
	e, ok := ed.again()
	switch {
	case !ok:
		return nil, false
	case e.Allow:
		return ed.deny()
	}
	for i, v := range e.Votes {
		if v.Allow {
			continue
		}
		if i == 0 {
			ed.grant()
		} else {
			ed.free(i-1, v)
		}
	}
	if i := slices.IndexFunc(ed.made, func(e Edit) bool { return e.Do == "nothing" }); i >= 0 {
		return ed.made[i : i+1], true // whatever else is edited
	}
	e, ok = ed.again()
	return ed.made, ok && e.Allow
}

// again is the decision as the policy is now.
func (ed *editor) again() (caps.Explanation, bool) {
	plan, err := run.NewPlan(ed.policy)
	if err != nil {
		return caps.Explanation{}, false
	}
	e := plan.Effective.Explain(ed.request)
	return e, len(e.Votes) == len(ed.layers())+1
}

// layers are all that narrow, in the order of votes.
func (ed *editor) layers() []*caps.Layer {
	if ed.policy.Within != nil {
		return append(slices.Clip(ed.policy.Layers), ed.policy.Within)
	}
	return ed.policy.Layers
}

// deny takes what is allowed away: by the operator's own override.
func (ed *editor) deny() ([]Edit, bool) {
	g := ed.asked()
	ed.policy.Layers = append(ed.policy.Layers, &caps.Layer{Name: "edit", Deny: []caps.Entry{{Grant: g}}})
	e, ok := ed.again()
	key, words := "capabilities", ed.words()
	if g.Family == caps.Tool {
		key, words = "tools", []string{g.Scope}
	}
	what := "[deny] " + key + " = [" + quoted(words) + "]"
	return []Edit{{Layer: "override", Do: "add", What: what, Text: "write " + what + " into " + ed.of.Override}}, ok &&
		!e.Allow
}

// asked is the grant of exactly what is asked.
func (ed *editor) asked() caps.Grant {
	return caps.Grant{Family: ed.request.Family, Modes: ed.modes, Scope: ed.request.Name}
}

// words are the capabilities that are asked for, as they may be told.
func (ed *editor) words() []string {
	return caps.Grant{Family: ed.shown.Family, Modes: ed.modes, Scope: ed.shown.Name}.Strings()
}

func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(list, ", ")
}

// grant adds to the base what it never asked for.
func (ed *editor) grant() {
	ed.policy.Base = append(ed.policy.Base, caps.Entry{Grant: ed.asked()})
	what := policyLine(ed.shown)
	if ed.of.Bundle != nil && ed.of.Bundle.Bare {
		what = "--allow " + strings.Join(ed.words(), " --allow ")
		ed.made = append(ed.made, Edit{Layer: "base", Do: "add", What: what, Text: "launch it with " + what +
			": a module or program without a bundle asks for nothing else" + ed.mustExist()})
		return
	}
	ed.made = append(ed.made, Edit{Layer: "base", Do: "add", What: what, Text: "add " + what +
		" to policy.caps, or to the list of that key where there is one, and build again: operators can only restrict, so that " +
		"the bundle's author has to" + ed.mustExist()})
}

// mustExist is what is said of a path that is to be granted. Nobody looks whether
// it is there: the answer may go to who is to learn nothing of this host.
func (ed *editor) mustExist() string {
	if ed.request.Family != caps.FS {
		return ""
	}
	return " (a launch refuses a path that does not exist: make it first, or name the folder that it will be made in)"
}

// policyLine is the line of [capabilities] that grants r.
func policyLine(r caps.Request) string {
	key, value := r.Family.String(), fmt.Sprintf("[%q]", r.Name)
	switch r.Family {
	case caps.FS:
		if r.Mode != caps.Read {
			key = "fs_rw"
		}
	case caps.Time:
		value = "true"
	case caps.Net:
		scheme, host := "https", strings.TrimSuffix(r.Name, ":443")
		if caps.HTTP.Has(r.Mode) {
			scheme, host = "http", strings.TrimSuffix(r.Name, ":80")
		}
		value = fmt.Sprintf("[%q]", host)
		if caps.TCP.Has(r.Mode) {
			value = fmt.Sprintf("{ tcp = [%q] }", r.Name)
		}
		if scheme == "http" {
			value = fmt.Sprintf("{ hosts = [%q], allow_http = true }", host)
		}
	case caps.Secrets:
		if id, host, bound := strings.Cut(r.Name, "@"); bound {
			value = fmt.Sprintf("[{ id = %q, hosts = [%q] }]", id, strings.TrimSuffix(host, ":443"))
		}
	}
	return key + " = " + value
}

// free makes layer i allow the request, as far as anybody can: it removes each
// entry that denies it, and adds it to what bounds it.
func (ed *editor) free(i int, v caps.Vote) {
	layers := ed.layers()
	l := layers[i]
	const most = 64
	for range most {
		switch name, isProfile := strings.CutPrefix(l.Name, "profile:"); {
		case v.Allow:
			return
		case builtinLayer(l, v.Pos):
			ed.made = append(ed.made, Edit{Layer: l.Name, Do: "nothing", Source: v.Pos, Text: ed.builtinText(l)})
			return
		case isProfile && v.Pos.File == name+".toml": // is in no file that could be edited
			*l = caps.Layer{Name: l.Name}
			ed.made = append(ed.made, Edit{
				Layer: l.Name, Do: "leave_out", What: name, Source: v.Pos,
				Text: fmt.Sprintf("leave out the profile %s, which is built in (%s)", name, v.Pos),
			})
		case !ed.remove(l, v.Pos):
			ed.allow(l, v.Pos)
		}
		e, ok := ed.again()
		if !ok {
			return
		}
		v = e.Votes[i+1]
	}
}

// builtinLayer reports whether what refuses was written by nobody.
func builtinLayer(l *caps.Layer, pos caps.Pos) bool {
	return pos == caps.Pos{} || strings.HasPrefix(l.Name, parentPrefix) || policy.IsFloor(l.Name) &&
		strings.Contains(pos.File, "(built-in")
}

// parentPrefix begins the name of what the launching run holds; its agent's
// name follows.
const parentPrefix = caps.SumPrefix

func (ed *editor) builtinText(l *caps.Layer) string {
	switch {
	case strings.HasPrefix(l.Name, parentPrefix):
		return "the run of " + strings.TrimPrefix(l.Name, parentPrefix) +
			" that launches this one does not hold it, and nothing here can give it; explain that one by its --run"
	case l.Name == policy.Untrusted:
		return "the run has seen content from outside; a new run has not, and what the floor " + l.Name +
			" leaves is the operator's to say, in caps/profiles/" + l.Name +
			".toml, as is whose content is trusted, in security.caps.trusted_hosts"
	case l.Name == policy.Delegate:
		return "the floor " + l.Name + " holds for an agent that another one launched; the operator's caps/profiles/" +
			l.Name + ".toml or a binding under [delegation.bindings] says otherwise"
	}
	return "built-in protection: nothing can"
}

// remove takes out the entries that were written at pos and deny the request.
func (ed *editor) remove(l *caps.Layer, pos caps.Pos) bool {
	var words []string
	kept := slices.Clone(l.Deny)
	kept = slices.DeleteFunc(kept, func(e caps.Entry) bool {
		if e.Pos != pos || e.Grant.Family != ed.request.Family {
			return false
		}
		words = append(words, ed.of.names.Capabilities(wordsOf(e.Grant))...)
		return true
	})
	if len(words) == 0 {
		return false
	}
	// One place is one thing that was written: all of it goes.
	l.Deny = slices.DeleteFunc(kept, func(e caps.Entry) bool { return e.Pos == pos })
	ed.say(l, pos, "remove", quoted(slices.Compact(words)))
	return true
}

func wordsOf(g caps.Grant) []string {
	if g.Family == caps.Tool {
		return []string{g.Scope}
	}
	return g.Strings()
}

// allow adds the request to what bounds it.
func (ed *editor) allow(l *caps.Layer, pos caps.Pos) {
	l.Allow = append(slices.Clip(l.Allow), caps.Entry{Grant: ed.asked(), Pos: pos})
	what := policyLine(ed.shown)
	if ed.request.Family == caps.Tool {
		what = fmt.Sprintf("allow = [%q]", ed.request.Name)
	}
	ed.say(l, pos, "add", what)
}

// say is the edit in words: of a line of a file, or of a flag.
func (ed *editor) say(l *caps.Layer, pos caps.Pos, do, what string) {
	do, what = ed.reword(pos, do, what)
	e := Edit{Layer: l.Name, Do: do, What: what, Source: pos}
	profile, isProfile := strings.CutPrefix(l.Name, "profile:")
	switch {
	case pos.Line == 0 && strings.HasPrefix(pos.File, "--"):
		e.Do, e.Text = "leave_out", "leave out "+pos.File
	case pos.Line == 0:
		e.Do, e.Text = "leave_out", "have another layer than "+l.Name+" ("+pos.File+")"
	case do == "remove":
		e.Text = fmt.Sprintf("remove from line %d of %s: %s", pos.Line, pos.File, what)
	case do == "replace":
		e.Text = fmt.Sprintf("write on line %d of %s, in place of what it says: %s", pos.Line, pos.File, what)
	default:
		e.Text = fmt.Sprintf("add to line %d of %s, in the list that is there: %s", pos.Line, pos.File, what) + ed.mustExist()
	}
	if isProfile {
		e.Text += ", or use another --profile than " + profile
	}
	ed.made = append(ed.made, e)
}
