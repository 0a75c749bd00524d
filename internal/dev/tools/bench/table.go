package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// print writes the table, or everything as one document.
func (b *bench) print(w io.Writer, m machine) error {
	if err := b.table(w, m, lines()); err != nil || b.json {
		return err
	}
	b.notes(w)
	return nil
}

// table writes lines, and in JSON all that there is.
func (b *bench) table(w io.Writer, m machine, lines []line) error {
	var rows []row
	for _, l := range lines {
		rows = append(rows, b.row(l))
	}
	if b.json {
		return b.document(w, m, rows)
	}
	fmt.Fprintf(w, "%s, %d cores, %s, %s; load %s; %d rounds\n", m.CPU, m.Cores, m.OS, m.Go, m.Load, b.rounds)
	if m.Others >= busy {
		fmt.Fprintf(w, "BUSY: other programs took %d %% of the machine meanwhile; times are too long, quotients hold but "+
			"are wider\n", m.Others)
	}
	fmt.Fprintln(w)
	return grid(w, rows)
}

// A row is a line with what was measured.
type row struct {
	What    string             `json:"what"`
	Unit    string             `json:"unit"`
	Ours    *spread            `json:"ours,omitempty"`
	Against *spread            `json:"against,omitempty"`
	Floor   string             `json:"against_is,omitempty"`
	Times   *spread            `json:"times,omitempty"`
	Goal    string             `json:"target,omitempty"`
	Verdict string             `json:"verdict"`
	Peers   map[string]*spread `json:"peers,omitempty"`
	Missing []string           `json:"missing,omitempty"`
}

// shown is a figure in the unit of its line, or nil.
func (b *bench) shown(key string, l line) *spread {
	f := b.figures[key]
	if !f.there() {
		return nil
	}
	scaled := make([]float64, len(f.Samples))
	for i, v := range f.Samples {
		scaled[i] = v * max(l.scale, 0)
		if l.scale == 0 {
			scaled[i] = v
		}
	}
	s := spreadOf(scaled)
	return &s
}

func (b *bench) row(l line) row {
	r := row{
		What: l.what, Unit: l.unit, Floor: l.floor, Ours: b.shown(l.ours, l), Peers: map[string]*spread{},
		Goal: l.goal.String(),
	}
	if l.against != "" {
		r.Against = b.shown(l.against, l)
	}
	if r.Ours != nil && r.Against != nil {
		q := quotient(b.figures[l.ours], b.figures[l.against])
		r.Times = &q
	}
	for c, key := range l.peers {
		if s := b.shown(key, l); s != nil {
			r.Peers[string(c)] = s
		} else {
			r.Missing = append(r.Missing, string(c))
		}
	}
	slices.Sort(r.Missing)
	judged := r.Times
	if l.goal.own || l.goal.at == 0 {
		judged = r.Ours
	}
	r.Verdict = l.goal.verdict(judged)
	return r
}

func (g goal) String() string {
	sign := "<= "
	if g.least {
		sign = ">= "
	}
	switch {
	case g.at == 0:
		return ""
	case g.own:
		return sign + number(g.at)
	}
	return sign + number(g.at) + "x"
}

// fewest is how many samples a verdict needs to be one.
const fewest = 5

// verdict says whether the goal is met. A question mark says that the goal lies
// within what the middle may be.
func (g goal) verdict(s *spread) string {
	if s == nil {
		return "not measured"
	}
	if g.at == 0 {
		return ""
	}
	word := "missed"
	if s.Median <= g.at != g.least || s.Median == g.at {
		word = "met"
	}
	if s.Count < fewest || s.Low <= g.at && g.at <= s.High {
		word += "?"
	}
	return word
}

// grid writes rows as aligned columns.
func grid(w io.Writer, rows []row) error {
	cells := [][]string{{"", "unit", "rlp", "against", "", "times", "95 %", "of minima", "target", ""}}
	peers := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return !slices.ContainsFunc(rows, func(r row) bool { return r.has(c) })
	})
	for _, c := range peers {
		cells[0] = append(cells[0], string(c))
	}
	for _, r := range rows {
		against := ""
		if r.Floor != "" {
			against = cell(r.Against)
		}
		line := []string{r.What, r.Unit, cell(r.Ours), against, r.Floor, "", "", "", r.Goal, r.Verdict}
		if r.Times != nil {
			line[5], line[6] = number(r.Times.Median), number(r.Times.Low)+"-"+number(r.Times.High)
			line[7] = number(r.Ours.Least / r.Against.Least)
		}
		for _, c := range peers {
			switch {
			case r.Peers[string(c)] != nil:
				line = append(line, cell(r.Peers[string(c)]))
			case slices.Contains(r.Missing, string(c)):
				line = append(line, "-")
			default:
				line = append(line, "")
			}
		}
		cells = append(cells, line)
	}
	width := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	for _, line := range cells {
		var out strings.Builder
		for i, c := range line {
			pad := strings.Repeat(" ", width[i]-len([]rune(c)))
			if left := i == 0 || i == 1 || i == 4 || i == 9; left {
				c += pad
			} else {
				c = pad + c
			}
			out.WriteString(c + "  ")
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(out.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// has says that a row is about a peer, measured or not.
func (r row) has(c column) bool {
	return r.Peers[string(c)] != nil || slices.Contains(r.Missing, string(c))
}

func cell(s *spread) string {
	if s == nil {
		return "-"
	}
	return number(s.Median)
}

// number is v with three digits that mean something.
func number(v float64) string {
	switch {
	case v == 0 || v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// notes name what stands beside the table, and what is not there.
func (b *bench) notes(w io.Writer) {
	fmt.Fprintf(w, "\nMedians; times are of the rounds that both were measured in, and where their median lies as 19 "+
		"times of 20.\n")
	fmt.Fprintf(w, "Beside it, ms: true %s, an empty Go program %s, bare %s and %s (tiny, Go), bare + fdatasync %s and "+
		"%s; ns: Extism's call with a number %s, with a reply in its memory %s.\n",
		b.plain("true"), b.plain("go-true"), b.plain("tiny/bare"), b.plain("go/bare"), b.plain("tiny/bare+sync"),
		b.plain("go/bare+sync"),
		b.plain("call/extism-stack"), b.plain("call/extism-reply"))
	why := map[string][]string{}
	for key, f := range b.figures {
		if !f.there() {
			why[f.Missing] = append(why[f.Missing], key)
		}
	}
	for _, missing := range slices.Sorted(maps.Keys(why)) {
		first, _, _ := strings.Cut(missing, "\n")
		fmt.Fprintf(w, "%s: %s\n", strings.Join(slices.Sorted(slices.Values(why[missing])), ", "), first)
	}
	fmt.Fprintln(w, "What each line does and leaves out: docs/performance.md.")
}

func (b *bench) plain(key string) string {
	if f := b.figures[key]; f.there() {
		return number(spreadOf(f.Samples).Median)
	}
	return "-"
}

// document writes everything that is known.
func (b *bench) document(w io.Writer, m machine, rows []row) error {
	type measured struct {
		*figure
		*spread
	}
	all := map[string]measured{}
	for key, f := range b.figures {
		one := measured{figure: f}
		if f.there() {
			s := spreadOf(f.Samples)
			one.spread = &s
		}
		all[key] = one
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{"machine": m, "rounds": b.rounds, "lines": rows, "figures": all})
}
