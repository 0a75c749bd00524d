package top

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/serve/client"
)

// The smallest window that is drawn for, where none is known.
const (
	usualWidth  = 80
	usualHeight = 24
)

// Text is all that is shown: as many lines as the window has, none wider.
func (m *Model) Text() string {
	w, h := m.width, m.height
	if w <= 0 || h <= 0 {
		w, h = usualWidth, usualHeight
	}
	lines := []string{m.head()}
	room := max(h-2, 1)
	switch {
	case m.help:
		lines = append(lines, helpLines()...)
	case m.open != "":
		lines = append(lines, m.callLines(room)...)
	default:
		lines = append(lines, m.runLines(room)...)
	}
	if len(lines) > h-1 {
		lines = lines[:max(h-1, 1)]
	}
	for len(lines) < h-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot())
	for i, line := range lines {
		lines[i] = m.paint(fit(line, w))
	}
	return strings.Join(lines, "\n")
}

func (m *Model) head() string {
	under := 0
	for _, r := range m.runs {
		if !r.Ended() {
			under++
		}
	}
	return fmt.Sprintf("rlp top   %d runs, %d under way", len(m.runs), under)
}

func (m *Model) foot() string {
	switch {
	case m.asking != "":
		return "cancel run " + m.asking + "? y/n"
	case m.typing:
		return "/" + m.filter
	case m.problem != "":
		return "! " + m.problem
	case m.open != "":
		return "esc back  c cancel  ? help  q quit"
	case m.filter != "":
		return "filter: " + m.filter + "   / change  enter calls  c cancel  ? help  q quit"
	}
	return "enter calls  c cancel  / filter  ? help  q quit"
}

func helpLines() []string {
	return []string{
		"", "  up, k / down, j   choose a run", "  enter             its calls, as they are decided",
		"  esc               back",
		"  c                 cancel the run; asks before",
		"  /                 filter by agent, state, outcome or id; esc takes it away", "  ?                 this page",
		"  q, ctrl+c         end",
	}
}

const columns = "  RUN       AGENT                STATE    OUTCOME     ALLOWED DENIED       MS"

func row(r *client.Run) string {
	id := r.RunID
	if len(id) > 8 {
		id = id[len(id)-8:]
	}
	return fmt.Sprintf("%-8s  %-20s %-8s %-11s %7d %6d %8d", fit(id, 8), fit(r.Agent, 20), fit(r.State, 8),
		fit(r.Outcome, 11), r.Allowed, r.Denied, r.WallMS)
}

func (m *Model) runLines(room int) []string {
	list := m.shown()
	at := m.place(list)
	lines := []string{columns}
	first := max(0, at-(room-2))
	for i := first; i < len(list) && len(lines) < room; i++ {
		mark := "  "
		if list[i].RunID == m.at {
			mark = "> "
		}
		lines = append(lines, mark+row(&list[i]))
	}
	if len(list) == 0 {
		lines = append(lines, "  no runs")
	}
	return lines
}

func (m *Model) callLines(room int) []string {
	lines := []string{"run " + m.open}
	for _, c := range m.calls[max(0, len(m.calls)-(room-1)):] {
		lines = append(lines, c.line())
	}
	return lines
}

func (c *Call) line() string {
	at := c.At
	if _, clock, found := strings.Cut(at, "T"); found {
		at = strings.TrimSuffix(clock, "Z")
	}
	switch c.Kind {
	case "cap.audit":
		text := fmt.Sprintf("%s %-5s %-12s %s", at, c.Decision, c.Cap, c.Target)
		if c.Decision == "deny" {
			text = fmt.Sprintf("%s %-5s %-12s %s%s: %s", at, c.Decision, c.Cap, c.Reason, by(c.Layer), c.Target)
		}
		return text
	case "call.done":
		return fmt.Sprintf("%s       %-12s %s", at, c.Verb, c.Status)
	}
	return strings.TrimSpace(fmt.Sprintf("%s       %s %s", at, c.Kind, c.Outcome))
}

// by is the layer that took what was asked, where one did.
func by(layer string) string {
	if layer == "" {
		return ""
	}
	return " by " + layer
}

// fit is s as text of at most w columns: what would steer the terminal, or turn
// the direction of a line, is shown as what it is.
func fit(s string, w int) string {
	s = Printable(cut(s, w))
	if columnsOf(s) <= w {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && columnsOf(string(r)) > w {
		r = r[:len(r)-1]
	}
	return string(r)
}

// columnsOf is how many columns a printable text has: two for what is wide in East
// Asia, pictures among it.
func columnsOf(s string) int {
	n := 0
	for _, r := range s {
		n++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}

// cut is so much of the beginning of s as could fill w columns: agents decide how
// long it is, and each line is drawn again and again.
func cut(s string, w int) string {
	n := 0
	for i := range s {
		if n++; n > 2*w+16 {
			return s[:i]
		}
	}
	return s
}

// Printable is s in one line, as all that is printed shows it; marks that stand
// above letters would change how wide it is.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			return '?'
		}
		return r
	}, printable.Line(s))
}

// paint colours what is denied or went wrong, and the chosen line.
func (m *Model) paint(line string) string {
	if !m.Color {
		return line
	}
	switch {
	case strings.HasPrefix(line, "> "):
		return "\x1b[1m" + line + "\x1b[m"
	case strings.HasPrefix(line, "! "), strings.Contains(line, " deny "):
		return "\x1b[31m" + line + "\x1b[m"
	}
	return line
}

// Snapshot writes the runs once, as a table.
func Snapshot(w io.Writer, runs []client.Run) error {
	lines := []string{strings.TrimPrefix(columns, "  ")}
	for i := range runs {
		lines = append(lines, row(&runs[i]))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
