package main

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// A report is what was found in a tree.
type report struct {
	tree       string
	options    options
	files      []file
	duplicates []duplicate
	findings   []finding
	skipped    []string // folders
	problems   []problem
}

// A duplicate is a content that several files have.
type duplicate struct {
	sha256 string
	size   int64 // of one of them, bytes
	paths  []string
}

func (d duplicate) wasted() int64 { return d.size * int64(len(d.paths)-1) }

// A problem is something that the agent could not do and did without.
type problem struct{ doing, target, why string }

func (r *report) suspect(found ...finding) { r.findings = append(r.findings, found...) }

// sort brings everything in the order of the report: the largest, the most
// wasteful and the most telling first.
func (r *report) sort() {
	slices.SortFunc(r.files, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.path, b.path))
	})
	slices.SortFunc(r.duplicates, func(a, b duplicate) int {
		return cmp.Or(cmp.Compare(b.wasted(), a.wasted()), strings.Compare(a.paths[0], b.paths[0]))
	})
	slices.SortStableFunc(r.findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.path, b.path))
	})
	slices.SortStableFunc(r.problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.target, b.target), strings.Compare(a.doing, b.doing))
	})
}

// large returns the files of the size that was asked for, largest first.
func (r *report) large() []file {
	n, _ := slices.BinarySearchFunc(r.files, r.options.large, func(f file, large int64) int {
		if f.size >= large {
			return -1
		}
		return 1
	})
	return r.files[:n]
}

func (r *report) json(indent string) []byte {
	w := jsonlite.Writer{Indent: indent}
	var bytes, wasted int64
	for _, f := range r.files {
		bytes += f.size
	}
	for _, d := range r.duplicates {
		wasted += d.wasted()
	}
	w.Object()
	w.Key("tree").String(r.tree)
	w.Key("options").Object()
	w.Key("large_bytes").Int(r.options.large)
	w.Key("top").Int(int64(r.options.top))
	w.End()
	w.Key("totals").Object()
	w.Key("files").Int(int64(len(r.files)))
	w.Key("bytes").Int(bytes)
	w.Key("large").Int(int64(len(r.large())))
	w.Key("duplicates").Int(int64(len(r.duplicates)))
	w.Key("wasted_bytes").Int(wasted)
	w.Key("suspicious").Int(int64(len(r.findings)))
	w.Key("problems").Int(int64(len(r.problems)))
	w.End()
	r.writeLists(&w)
	w.Key("skipped").Strings(top(r, r.skipped))
	w.End()
	return append(w.Bytes(), '\n')
}

func (r *report) writeLists(w *jsonlite.Writer) {
	w.Key("large").Array()
	for _, f := range top(r, r.large()) {
		w.Object()
		w.Key("path").String(f.path)
		w.Key("bytes").Int(f.size)
		w.End()
	}
	w.End()
	w.Key("duplicates").Array()
	for _, d := range top(r, r.duplicates) {
		w.Object()
		w.Key("sha256").String(d.sha256)
		w.Key("bytes").Int(d.size)
		w.Key("wasted_bytes").Int(d.wasted())
		w.Key("paths").Strings(d.paths)
		w.End()
	}
	w.End()
	w.Key("suspicious").Array()
	for _, f := range top(r, r.findings) {
		w.Object()
		w.Key("path").String(f.path)
		if f.line > 0 {
			w.Key("line").Int(int64(f.line))
		}
		w.Key("kind").String(f.kind.String())
		w.Key("detail").String(f.detail)
		w.End()
	}
	w.End()
	w.Key("problems").Array()
	for _, p := range top(r, r.problems) {
		w.Object()
		w.Key("doing").String(p.doing)
		w.Key("target").String(p.target)
		w.Key("why").String(p.why)
		w.End()
	}
	w.End()
}

// top cuts a list to the length that was asked for; totals count all of it.
func top[T any](r *report, list []T) []T { return list[:min(len(list), r.options.top)] }
