package pii

import "bytes"

// A group is digits that stand together: those of the text from start to end.
type group struct {
	start, end int32
	// apart is what the gap before it costs in a number that could end there.
	apart  int16
	isItem bool // it is the number of an item of a list
}

// A run is groups of digits with what separates them: where every number that
// is a datum is found. It may hold several.
type run struct {
	b           []byte
	groups      []group
	end         int  // where it ends in b
	isAnnounced bool // a word says that telephone numbers follow
	isOpen      bool // a number may begin with the first group
}

func (r *run) size(g int) int { return int(r.groups[g].end - r.groups[g].start) }

func (r *run) digits(g int) []byte { return r.b[r.groups[g].start:r.groups[g].end] }

// before is the byte before group g, 0 at the beginning of the text.
func (r *run) before(g int) byte {
	if i := r.groups[g].start; i > 0 {
		return r.b[i-1]
	}
	return 0
}

func (r *run) gap(g int) []byte { return r.b[r.groups[g-1].end:r.groups[g].start] }

func (r *run) all(g, h int) []byte {
	d := make([]byte, 0, 24)
	for ; g < h; g++ {
		d = append(d, r.digits(g)...)
	}
	return d
}

// readRun reads the groups of digits from b[i] on. It ends before a plus that
// begins a number.
func readRun(b []byte, i int, room []group) run {
	r := run{b: b, groups: room}
	isSpaced := false
	for {
		start := i
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		r.groups = append(r.groups, group{start: int32(start), end: int32(i)})
		r.end = i
		next := i
		for next < len(b) && next-i < maxGap && isSeparator(b[next]) {
			next++
		}
		if next == i || next == len(b) || !isDigit(b[next]) {
			return r
		}
		isSpaced = isSpaced || bytes.IndexByte(b[i:next], ' ') >= 0
		if plus := bytes.IndexByte(b[i:next], '+'); plus >= 0 && (isSpaced || plus > 0 && b[i+plus-1] != ')' ||
			b[next-1] != '+') {
			return r // else it may be a blank, as forms write it
		}
		i = next
	}
}

func isSeparator(c byte) bool {
	return c == ' ' || c == '-' || c == '.' || c == '/' || c == '(' || c == ')' || c == '+'
}

const (
	leastDigits = 7  // of a number that is a datum
	mostGroups  = 19 // of one
	maxGap      = 3  // bytes between groups
	fewGroups   = 12 // cost no memory
)
