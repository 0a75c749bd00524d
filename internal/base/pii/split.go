package pii

import "bytes"

// What numbers stand in a run is decided for all of it at once: of all ways to
// read it, the one that costs least. Digits that are left over cost most, so
// that a number never hides the beginning of the next; then what is unusual.
const (
	costDigit  = 1000 // for each digit that is none's
	costCheck  = 0    // a number whose form or check digit is right
	costPhone  = 4    // a telephone number of usual length
	costOdd    = 3    // for each step away from that
	costInside = 8    // the number of an item of a list, in the middle of a number
	costApart  = 3    // a gap that rather stands between numbers
	gainAlike  = 3    // it is written as what stands before it
)

// A choice is how to read what begins with a group.
type choice struct {
	cost int32
	take uint8 // groups; 0: the first is no datum's
	kind Kind
}

// choices are the data that may begin with a group, for each number of groups
// the likeliest.
type choices struct {
	from int
	of   [mostGroups + 1]choice
	most int
}

// offer says that the groups up to before h are one datum.
func (c *choices) offer(h int, k Kind, cost int32) {
	n := h - c.from
	for c.most < n {
		c.most++
		c.of[c.most] = choice{}
	}
	if old := &c.of[n]; old.take == 0 || cost < old.cost {
		*old = choice{cost, uint8(n), k}
	}
}

// A step is the best choice for a group, where a number may begin and where it
// may only behind another number.
type step struct{ open, shut choice }

// A datum is one that was found in a text.
type datum struct {
	start, end int
	kind       Kind
	normal     []byte
}

// eachDatum calls found with each datum of the run.
func (r *run) eachDatum(found func(datum)) {
	var room [fewGroups + 1]step
	steps := room[:]
	if n := len(r.groups) + 1; n > len(steps) {
		steps = make([]step, n)
	}
	r.plan(steps)
	isOpen := false
	for g := 0; g < len(r.groups); {
		c := steps[g].shut
		if isOpen {
			c = steps[g].open
		}
		isOpen = c.take > 0
		if !isOpen {
			g++
			continue
		}
		h := g + int(c.take)
		found(r.datum(g, h, c.kind))
		g = h
	}
}

func (r *run) plan(steps []step) {
	steps[len(r.groups)] = step{}
	var sure, likely choices
	for g := len(r.groups) - 1; g >= 0; g-- {
		of := &r.groups[g]
		of.isItem, of.apart = r.isItem(g), r.apart(g)
		skip := choice{cost: steps[g+1].shut.cost}
		if !of.isItem {
			skip.cost += int32(min(r.size(g), 100) * costDigit)
		}
		sure.from, sure.most = g, 0
		likely.from, likely.most = g, 0
		r.offerCards(g, &sure)
		r.offerAbroad(g, &sure)
		r.offerPhones(g, &likely)
		shut := r.best(&sure, skip, steps)
		open := r.best(&likely, shut, steps)
		if r.mayBegin(g) {
			shut = open
		}
		steps[g] = step{open: open, shut: shut}
	}
}

func (r *run) best(c *choices, known choice, steps []step) choice {
	spread, digits := int32(0), 0
	for n := 1; n <= c.most; n++ {
		of := &r.groups[c.from+n-1]
		if n > 1 && digits >= leastDigits {
			spread += int32(of.apart)
		}
		if of.isItem {
			spread += costInside
		}
		digits += int(of.end - of.start)
		next := c.of[n]
		if next.take == 0 || r.isGlued(c.from, c.from+n) {
			continue
		}
		next.cost += steps[c.from+n].open.cost + spread
		if n > 1 && next.cost-gainAlike <= known.cost && r.isAlike(c.from, n) {
			next.cost -= gainAlike
		}
		if next.cost < known.cost || next.cost == known.cost && next.take > known.take {
			known = next
		}
	}
	return known
}

// mayBegin reports whether a number may begin with group g whatever is before.
func (r *run) mayBegin(g int) bool {
	if g == 0 {
		return r.isOpen
	}
	c := r.before(g)
	return c == ' ' || c == '(' || c == ')' || c == '+'
}

// isGlued reports whether the groups from g to h are one, and it goes on as a
// word: digits of something else.
func (r *run) isGlued(g, h int) bool {
	if h != len(r.groups) || h != g+1 || r.end >= len(r.b) || int(r.groups[g].end) != r.end {
		return false
	}
	after := r.b[r.end]
	if !r.isAbroad(g) {
		return isAlnum(after) || after == '@'
	}
	plus := int(r.groups[g].start) - 1
	return isAlnum(after) && plus > 0 && (isAlnum(r.b[plus-1]) || r.b[plus-1] == '/')
}

// isItem reports whether group g is the number of an item of a list: "2. ".
func (r *run) isItem(g int) bool {
	rest := r.b[r.groups[g].end:]
	if r.size(g) > 2 || r.digits(g)[0] == '0' || len(rest) < 2 {
		return false
	}
	switch isLast := g+1 == len(r.groups); {
	case (rest[0] == '.' || rest[0] == ')') && (rest[1] == '+' || !isLast && (rest[1] == ' ' || rest[1] == '(')):
	case !isLast && bytes.HasPrefix(rest, []byte(" - ")):
	default:
		return false
	}
	switch r.before(g) {
	case '(':
		return rest[0] == ')' && (g == 0 || len(r.gap(g)) > 1)
	case '+':
		return false
	case ' ':
		return true
	}
	return g == 0
}

// apart is what the gap before group g costs in a number that could end there.
func (r *run) apart(g int) int16 {
	if g == 0 {
		return 0
	}
	gap := r.gap(g)
	switch last := gap[len(gap)-1]; {
	case last == '+' && r.size(g) >= leastDigits:
		return costDigit
	case len(gap) > 1 && bytes.IndexByte(gap, ' ') >= 0, last == '(', gap[0] == '/', gap[0] == '+':
		return costApart
	}
	return 0
}

// isAlike reports whether the n groups from g on are as long as those before.
func (r *run) isAlike(g, n int) bool {
	if g < n {
		return false
	}
	for i := g; i < g+n; i++ {
		if r.size(i) != r.size(i-n) {
			return false
		}
	}
	return true
}

func (r *run) datum(g, h int, k Kind) datum {
	d := datum{start: int(r.groups[g].start), end: int(r.groups[h-1].end), kind: k}
	if k == Phone {
		d.normal = r.phoneDatum(g, h)
	} else {
		d.normal = r.all(g, h)
	}
	open := bytes.Count(r.b[d.start:d.end], []byte{')'}) - bytes.Count(r.b[d.start:d.end], []byte{'('})
	for plus := false; d.start > 0; d.start-- {
		if c := r.b[d.start-1]; c == '+' && !plus {
			plus = true
		} else if c != '(' || open <= 0 {
			break
		} else {
			open--
		}
	}
	return d
}
