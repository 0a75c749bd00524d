package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// Options say what a suggestion is to be.
type Options struct {
	// Override asks for an operator's override, which narrows; otherwise the
	// suggestion is a policy.caps.
	Override bool
	// Folders is how many files of one folder make it the folder; 0: never.
	Folders int
	// IsFolder knows folders of this machine, for what is said of them; may be nil.
	IsFolder func(path string) bool
	// Missing knows paths that are not there on this machine; may be nil.
	Missing func(path string) bool
	// Written is how a policy spells a name that records have in its canonical
	// form: a program may be granted by several names, and be called by each. It
	// is the name itself where no policy spells it; Written may be nil.
	Written func(f caps.Family, name string) []string
	// Carried is what the override that is there says, and the suggested one, too.
	Carried Carried
	// AnyProgram says why every program is granted, where it is.
	AnyProgram string
	// Program says that it is of a program, whose files and clock are not recorded: an
	// override takes neither away.
	Program bool
	// Head is what is said first, a line each.
	Head []string
}

// A Suggestion is a document of policy, and what had to be said about it.
type Suggestion struct {
	Text string
	// Wider is what it grants beside what was used, since no document can be as
	// narrow; each is said in Text.
	Wider []Wider
	// Missing are paths in it that are not there: a launch may refuse them.
	Missing []string
	// Unsaid is what was used and is not in it, for no policy can name it.
	Unsaid []string
}

// A Wider is a region that is granted beside what was used.
type Wider struct {
	Grant caps.Grant
	Why   string
}

// Suggest is the least document that allows what was learnt.
func (l *Learner) Suggest(o Options) Suggestion {
	b := &builder{opt: o, learner: l}
	for _, t := range sorted(l.used) {
		b.uses[t.family] = append(b.uses[t.family], t)
	}
	for _, t := range sorted(l.unsaid) {
		b.cannot(t, t.text)
	}
	b.files()
	b.kb("kb_read", caps.KBRead)
	b.kb("kb_write", caps.KBWrite)
	b.time()
	b.secrets()
	for _, f := range []caps.Family{caps.Model, caps.Exec, caps.Env, caps.MCP, caps.Agents} {
		if f == caps.Exec && o.AnyProgram != "" {
			fmt.Fprintf(&b.keys, "exec = true # %s\n", comment(o.AnyProgram))
			continue
		}
		b.names(f.String(), f)
	}
	b.net()
	b.s.Text = b.document()
	return b.s
}

// A builder makes one suggestion. Net stands in a table of its own, after the
// other keys.
type builder struct {
	opt     Options
	learner *Learner
	uses    [caps.NumFamilies][]*tally
	s       Suggestion
	keys    strings.Builder
	table   strings.Builder
	denies  []line
}

// A line is one entry of an array and what is said of it.
type line struct{ value, about string }

// cannot tells of what is not in the document.
func (b *builder) cannot(t *tally, what string) {
	b.s.Unsaid = append(b.s.Unsaid, fmt.Sprintf("%s %s (%s)", caps.AuditName(t.family, t.mode), what, b.about(t)))
}

// wider notes what is granted beside what was used.
func (b *builder) wider(g caps.Grant, why string) {
	b.s.Wider = append(b.s.Wider, Wider{g, why})
}

func (b *builder) take(g caps.Grant, why string) {
	if !b.opt.Override {
		b.wider(g, why)
		return
	}
	for _, s := range g.Strings() {
		b.denies = append(b.denies, line{quote(s), why})
	}
}

// about says which calls needed something.
func (b *builder) about(list ...*tally) string {
	ops := map[string]int{}
	first := list[0]
	place := func(t *tally) (int, uint64) { return slices.Index(b.learner.order, t.run), t.runSeq }
	for _, t := range list {
		for op, n := range t.ops {
			ops[op] += n
		}
		if r, n := place(t); r < slices.Index(b.learner.order, first.run) || r == slices.Index(b.learner.order, first.run) &&
			n < first.runSeq {
			first = t
		}
	}
	var words []string
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		words = append(words, fmt.Sprintf("%s %dx", op, ops[op]))
	}
	if first.runSeq == 0 { // no record says so
		return fmt.Sprintf("%s; run %s", strings.Join(words, ", "), first.run)
	}
	return fmt.Sprintf("%s; first: run %s record %d", strings.Join(words, ", "), first.run, first.runSeq)
}

// never takes away what nothing used; key is the one of the policy.
func (b *builder) never(key, value string) {
	if b.opt.Program && (key == "fs" || key == "fs_rw" || key == "time") {
		return
	}
	if b.opt.Override {
		fmt.Fprintf(&b.keys, "%s = %s # never used\n", key, value)
	}
}

func (b *builder) list(key string, lines []line) {
	if len(lines) == 0 {
		b.never(key, "[]")
		return
	}
	writeList(&b.keys, key, lines)
}

func writeList(to *strings.Builder, key string, lines []line) {
	fmt.Fprintf(to, "%s = [\n", key)
	for _, l := range lines {
		fmt.Fprintf(to, "    %s, # %s\n", l.value, comment(l.about))
	}
	to.WriteString("]\n")
}

// written is a name as a policy spells it.
func (b *builder) written(f caps.Family, name string) []string {
	if b.opt.Written == nil {
		return []string{name}
	}
	return b.opt.Written(f, name)
}

func (b *builder) names(key string, f caps.Family) {
	var lines []line
	for _, t := range b.uses[f] {
		about := b.about(t)
		if f == caps.Env && len(t.ops) == 1 && t.ops["environ_get"] > 0 {
			about += "; given at the start, read or not"
		}
		for _, name := range b.written(f, t.name) {
			if _, _, err := caps.CleanPath(name); f == caps.Exec && err != nil {
				b.cannot(t, name)
				continue
			}
			lines = append(lines, line{quote(name), about})
		}
	}
	b.list(key, lines)
}

func (b *builder) kb(key string, f caps.Family) {
	if len(b.uses[f]) == 0 {
		b.never(key, "false")
		return
	}
	b.names(key, f)
}

func (b *builder) time() {
	if len(b.uses[caps.Time]) == 0 {
		b.never("time", "false")
		return
	}
	fmt.Fprintf(&b.keys, "time = true # %s\n", comment(b.about(b.uses[caps.Time]...)))
}

func (b *builder) document() string {
	var out strings.Builder
	say := func(format string, args ...any) { out.WriteString("# " + comment(fmt.Sprintf(format, args...)) + "\n") }
	for _, h := range b.opt.Head {
		say("%s", h)
	}
	for i, u := range b.s.Unsaid {
		if i == mostTold {
			say("used, and not granted here, for no policy can name it: %d more", len(b.s.Unsaid)-i)
			break
		}
		say("used, and not granted here, for no policy can name it: %s", u)
	}
	for i, w := range b.s.Wider {
		if i == mostTold {
			say("wider than what was used: %d more", len(b.s.Wider)-i)
			break
		}
		say("wider than what was used: %s (%s)", w.Grant, w.Why)
	}
	if names := b.opt.Carried.Names; len(names) > 0 {
		say("as the override has it that is there now: %s", strings.Join(names, ", "))
	}
	b.asked(say)
	out.WriteString("schema = \"0.2\"\n\n[capabilities]\n")
	out.WriteString(b.keys.String())
	if b.table.Len() > 0 {
		out.WriteString("\n[capabilities.net]\n" + b.table.String())
	}
	for _, d := range b.opt.Carried.Denied {
		if !slices.ContainsFunc(b.denies, func(l line) bool { return l.value == quote(d) }) {
			b.denies = append(b.denies, line{quote(d), "as in the override that is there now"})
		}
	}
	if len(b.denies) > 0 || b.opt.Carried.Deny != "" {
		out.WriteString("\n[deny]\n")
	}
	if len(b.denies) > 0 {
		writeList(&out, "capabilities", b.denies)
	}
	out.WriteString(b.opt.Carried.Deny)
	if b.opt.Carried.Tables != "" {
		out.WriteString("\n" + b.opt.Carried.Tables)
	}
	return out.String()
}

// Bounds of what is told in comments: a guest asks as often as it likes.
const (
	mostAsked = 100 // denials
	mostTold  = 20  // of each that was used
)

func (b *builder) asked(say func(format string, args ...any)) {
	list := sorted(b.learner.denied)
	slices.SortStableFunc(list, func(x, y *tally) int { return cmp.Compare(y.count, x.count) })
	for i, t := range list {
		if i == mostAsked {
			say("asked for and denied: %d more", len(list)-i)
			return
		}
		what := strings.TrimSuffix(caps.AuditName(t.family, t.mode)+" "+t.text, " ")
		say("asked for and denied: %s (%s; %s)", what, t.why, b.about(t))
	}
}
