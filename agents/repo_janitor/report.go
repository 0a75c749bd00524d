package main

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// A report is what was found in a checkout.
type report struct {
	repo     string
	options  options
	branches int
	stale    []branch
	changes  []change
	files    int
	bytes    int64
	large    []sized
	marks    []marked
	problems []problem
}

// A problem is something that the agent could not do and did without.
type problem struct{ doing, target, why string }

func (r *report) problem(doing, target string, err error) {
	r.problems = append(r.problems, problem{doing, target, sdk.Why(err)})
}

// words are the marks that are counted, in the order of the report.
func words() []string { return []string{"FIXME", "TODO", "XXX"} }

func (m marked) total() (n int) {
	for _, c := range m.counts {
		n += c
	}
	return n
}

// sort brings the oldest, the largest and the fullest to the front.
func (r *report) sort() {
	slices.SortFunc(r.stale, func(a, b branch) int {
		return cmp.Or(cmp.Compare(b.days, a.days), strings.Compare(a.name, b.name))
	})
	slices.SortFunc(r.changes, func(a, b change) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.path, b.path))
	})
	slices.SortFunc(r.large, func(a, b sized) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.path, b.path))
	})
	slices.SortFunc(r.marks, func(a, b marked) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), strings.Compare(a.path, b.path))
	})
}

func (r *report) counted() map[string]int {
	all := map[string]int{}
	for _, m := range r.marks {
		for word, n := range m.counts {
			all[word] += n
		}
	}
	return all
}

// top cuts a list to the length that was asked for; totals count all of it.
func top[T any](r *report, list []T) []T { return list[:min(int64(len(list)), r.options.top)] }

// markdown is the report for people.
func (r *report) markdown() []byte {
	var b bytes.Buffer
	line := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
		b.WriteByte('\n')
	}
	counts := r.counted()
	line("# ", code(r.repo), "\n")
	line("- branches: ", strconv.Itoa(r.branches), ", ", strconv.Itoa(len(r.stale)), " stale")
	line("- not committed: ", strconv.Itoa(len(r.changes)))
	line("- files: ", strconv.Itoa(r.files), ", ", strconv.FormatInt(r.bytes, 10), " bytes, ", strconv.Itoa(len(r.large)),
		" large")
	for _, w := range words() {
		line("- ", w, ": ", strconv.Itoa(counts[w]))
	}
	section(&b, "Stale branches", top(r, r.stale), len(r.stale), func(x branch) string {
		state := "not merged"
		if x.merged {
			state = "merged, can go"
		}
		return code(x.name) + ": " + strconv.FormatInt(x.days, 10) + " days, " + state
	})
	section(&b, "Not committed", top(r, r.changes), len(r.changes), func(x change) string {
		return x.kind + ": " + code(x.path)
	})
	section(&b, "Large files", top(r, r.large), len(r.large), func(x sized) string {
		return code(x.path) + ": " + strconv.FormatInt(x.bytes, 10) + " bytes"
	})
	section(&b, "Left for later", top(r, r.marks), len(r.marks), func(x marked) string {
		text := code(x.path) + ":"
		for _, w := range words() {
			if n := x.counts[w]; n > 0 {
				text += " " + w + " " + strconv.Itoa(n)
			}
		}
		return text
	})
	section(&b, "Problems", r.problems, len(r.problems), func(x problem) string {
		return x.doing + " " + code(x.target) +
			": " + x.why
	})
	return b.Bytes()
}

func section[T any](b *bytes.Buffer, title string, list []T, total int, text func(T) string) {
	if total == 0 {
		return
	}
	b.WriteString("\n## " + title + "\n\n")
	for _, x := range list {
		b.WriteString("- " + text(x) + "\n")
	}
	if more := total - len(list); more > 0 {
		b.WriteString("- and " + strconv.Itoa(more) + " more\n")
	}
}

// code is a name from the checkout as Markdown shows it and nothing of it acts:
// what a name could end or begin is taken out.
func code(name string) string {
	return "`" + strings.Map(func(c rune) rune {
		if c < ' ' || c == '`' || c == 0x7f || !strconv.IsPrint(c) {
			return '?'
		}
		return c
	}, name) + "`"
}

// json is the report for programs.
func (r *report) json() []byte {
	var w jsonlite.Writer
	counts := r.counted()
	w.Object()
	w.Key("repo").String(r.repo)
	w.Key("totals").Object()
	for _, t := range []struct {
		key string
		n   int64
	}{
		{"branches", int64(r.branches)},
		{"stale", int64(len(r.stale))},
		{"changes", int64(len(r.changes))},
		{"files", int64(r.files)},
		{"bytes", r.bytes},
		{"large", int64(len(r.large))},
		{"fixme", int64(counts["FIXME"])},
		{"todo", int64(counts["TODO"])},
		{"xxx", int64(counts["XXX"])},
		{"problems", int64(len(r.problems))},
	} {
		w.Key(t.key).Int(t.n)
	}
	w.End()
	r.lists(&w)
	w.End()
	return w.Bytes()
}

func (r *report) lists(w *jsonlite.Writer) {
	array(w, "stale", top(r, r.stale), func(x branch) {
		w.Key("branch").String(x.name)
		w.Key("days").Int(x.days)
		w.Key("merged").Bool(x.merged)
	})
	array(w, "changes", top(r, r.changes), func(x change) {
		w.Key("kind").String(x.kind)
		w.Key("path").String(x.path)
	})
	array(w, "large", top(r, r.large), func(x sized) {
		w.Key("path").String(x.path)
		w.Key("bytes").Int(x.bytes)
	})
	array(w, "marks", top(r, r.marks), func(x marked) {
		w.Key("path").String(x.path)
		for _, word := range words() {
			w.Key(strings.ToLower(word)).Int(int64(x.counts[word]))
		}
	})
	array(w, "problems", r.problems, func(x problem) {
		w.Key("doing").String(x.doing)
		w.Key("target").String(x.target)
		w.Key("why").String(x.why)
	})
}

// array writes a list of objects.
func array[T any](w *jsonlite.Writer, key string, list []T, fill func(T)) {
	w.Key(key).Array()
	for _, x := range list {
		w.Object()
		fill(x)
		w.End()
	}
	w.End()
}
