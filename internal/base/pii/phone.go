package pii

// A phone has this many digits with what stands for its country, and without.
const (
	mostAbroad   = 15
	mostNational = 12
)

// isAbroad reports whether a plus before group g says that it begins with the
// number of a country. None begins with 0.
func (r *run) isAbroad(g int) bool { return r.hasPlus(g) && r.digits(g)[0] != '0' }

func (r *run) hasPlus(g int) bool {
	i := int(r.groups[g].start)
	return i > 0 && r.b[i-1] == '+' || i > 1 && r.b[i-1] == '(' && r.b[i-2] == '+'
}

// offerAbroad are the numbers that begin with a plus before group g.
func (r *run) offerAbroad(g int, c *choices) {
	if !r.hasPlus(g) {
		return
	}
	usual := 12
	if r.digits(g)[0] == '1' {
		if h := r.reach(g, 11); h > 0 {
			c.offer(h, Phone, costPhone)
			return
		}
		usual = 11
	}
	r.offerSizes(g, c, sizes{leastDigits, mostAbroad, usual, costPhone})
}

// sizes are how many digits a number has, and usually.
type sizes struct {
	least, most, usual int
	cost               int32
}

// offerSizes are the numbers of such sizes that begin with group g.
func (r *run) offerSizes(g int, c *choices, s sizes) {
	n := 0
	for h := g; h < len(r.groups) && h-g < mostGroups; {
		if n >= 9 && r.digits(h)[0] == '0' && r.size(h) >= 3 && r.before(h) == ' ' {
			s.cost += 2 * costOdd // rather the next number
		}
		n += r.size(h)
		h++
		if n > s.most {
			return
		}
		if n >= s.least {
			off := max(n-s.usual, s.usual-n, 1) - 1
			c.offer(h, Phone, s.cost+int32(off)*costOdd)
		}
	}
}

// reach is the group behind those from g on that have n digits, 0 for none.
func (r *run) reach(g, n int) int {
	for ; g < len(r.groups) && n > 0; g++ {
		n -= r.size(g)
	}
	if n != 0 {
		return 0
	}
	return g
}

// offerPhones are the numbers that begin with group g and no plus.
func (r *run) offerPhones(g int, c *choices) {
	if r.isAnnounced {
		r.offerSizes(g, c, sizes{leastDigits, mostAbroad, 8, costPhone})
	}
	d := r.digits(g)
	switch {
	case d[0] != '0':
		r.offerAmerican(g, c)
	case len(d) > 2 && d[1] == '0' && d[2] != '0':
		least := 9
		if len(d) > 5 {
			least = 11
		}
		r.offerSizes(g, c, sizes{least, mostAbroad + 2, 14, costPhone})
	case len(d) == 1 || d[1] != '0':
		r.offerNational(g, c)
	}
}

// offerNational are numbers with the digit that trunk calls begin with.
func (r *run) offerNational(g int, c *choices) {
	first := r.size(g)
	switch {
	case first >= 10 && first <= mostNational:
		c.offer(g+1, Phone, costPhone)
	case first < 2 || first > 6 || r.isDate(g):
	default:
		// A digit of its own may be the last, as an extension is.
		short := run{b: r.b, groups: r.groups}
		for h := g + 1; h < len(r.groups) && h-g < mostGroups; h++ {
			if r.size(h) < 2 {
				if string(r.gap(h)) == "-" {
					h++
				}
				short.groups = r.groups[:h]
				break
			}
		}
		short.offerSizes(g, c, sizes{leastDigits, mostNational, 11, costPhone})
	}
}

// isDate reports whether the groups from g on are a day, a month and a year.
func (r *run) isDate(g int) bool {
	m, y := g+1, g+2
	if y >= len(r.groups) || r.size(g) != 2 || r.size(m) != 2 || r.before(m) == ' ' {
		return false
	}
	if r.before(y) != r.before(m) || r.size(y) != 2 && r.size(y) != 4 {
		return false
	}
	return r.size(y) == 4 || y+1 >= len(r.groups) || r.before(y+1) != r.before(m)
}

// offerAmerican is ten digits as 3, 3 and 4, with or without a 1 before them.
func (r *run) offerAmerican(g int, c *choices) {
	a := g
	if r.size(g) == 1 && r.digits(g)[0] == '1' {
		a++
	}
	if a+3 > len(r.groups) || r.size(a) != 3 || r.size(a+1) != 3 || r.size(a+2) != 4 || r.digits(a)[0] < '2' ||
		r.digits(a + 1)[0] < '2' {
		return
	}
	c.offer(a+3, Phone, costPhone-1)
}

// phoneDatum is a number as every spelling of it is written: digits, with a
// plus where the country is known.
func (r *run) phoneDatum(g, h int) []byte {
	isAbroad := r.isAbroad(g)
	d := make([]byte, 0, 24)
	for i := g; i < h; i++ {
		if isAbroad && i > g && r.before(i) == '(' && string(r.digits(i)) == "0" {
			continue // +49 (0)30
		}
		d = append(d, r.digits(i)...)
	}
	return normalPhone(d, isAbroad)
}

// phones are the masks of the numbers in the text of a telephone's field, ""
// where rules know none or not all of it: a list stays a list.
func (w *work) phones(text []byte) string {
	with, ok := "", true
	for i := 0; i < len(text) && ok; i++ {
		if !isDigit(text[i]) {
			continue
		}
		var room [fewGroups]group
		r := readRun(text, i, room[:0])
		r.isOpen = true
		digits := 0
		r.eachDatum(func(d datum) {
			ok = ok && d.kind == Phone
			if with != "" {
				with += ", "
			}
			with += w.mark(Phone, d.normal)
			digits += count(text[d.start:d.end])
		})
		ok = ok && digits == count(text[i:r.end]) && (i == 0 || !isAlnum(text[i-1]))
		i = r.end
	}
	if !ok {
		return ""
	}
	return with
}

func count(b []byte) int {
	n := 0
	for _, c := range b {
		if isDigit(c) {
			n++
		}
	}
	return n
}

func normalPhone(d []byte, isAbroad bool) []byte {
	switch {
	case isAbroad:
	case len(d) > 9 && d[0] == '0' && d[1] == '0':
		d = d[2:]
	case len(d) == 10 && d[0] >= '2' && d[3] >= '2':
		d = append([]byte{'1'}, d...)
	case len(d) == 11 && d[0] == '1':
	default:
		return d
	}
	return append([]byte{'+'}, d...)
}
