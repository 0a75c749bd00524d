package pii

import "bytes"

// glance is where the first digits from b[i] on end, and how many there are in
// all the groups, as far as it matters.
func glance(b []byte, i int) (end, digits int) {
	for i < len(b) && isDigit(b[i]) {
		i++
		digits++
	}
	end = i
	for gap := 0; i < len(b) && digits < leastDigits && gap <= maxGap; i++ {
		switch {
		case isDigit(b[i]):
			digits++
			gap = 0
		case isSeparator(b[i]):
			gap++
		default:
			return end, digits
		}
	}
	return end, digits
}

// number looks for data among the digits from b[i] on and returns where it has
// looked to.
func (s *search) number(v view, i, depth int) int {
	b := v.b
	if end, datum := ibanAt(b, i); end > 0 {
		s.add(&v, i-2, end, depth, s.mark(IBAN, datum))
		return end
	}
	if end, digits := glance(b, i); digits < leastDigits || i > 0 && isAlnum(b[i-1]) {
		return end
	}
	return s.run(&v, i, depth)
}

// run masks the data in the run that begins at v.b[i], and returns where it ends.
func (s *search) run(v *view, i, depth int) int {
	b := v.b
	var room [fewGroups]group
	r := readRun(b, i, room[:0])
	end := r.end
	if s.hasAt {
		r.cutAddress()
	}
	if len(r.groups) == 0 {
		return end
	}
	r.isAnnounced = isAnnounced(b, i)
	r.isOpen = r.mayOpen() || isBehindDatum(b, i, s.edge)
	r.eachDatum(func(d datum) {
		s.add(v, d.start, d.end, depth, s.mark(d.kind, d.normal))
	})
	return end
}

// cutAddress takes the groups away that are the beginning of a mail address.
func (r *run) cutAddress() {
	at := r.end
	for at < len(r.b) && at-r.end < maxLocal && (isLocal(r.b[at]) || r.b[at] >= 0x80) {
		at++
	}
	if at+1 < len(r.b) && r.b[at] == ' ' && r.b[at+1] == '@' {
		at++
	}
	if at == len(r.b) || r.b[at] != '@' {
		return
	}
	if a, ok := addressAt(r.b, at); ok {
		for n := len(r.groups); n > 0 && int(r.groups[n-1].end) > a.start; n-- {
			r.groups = r.groups[:n-1]
		}
	}
}

// mayOpen reports whether what stands before the run leaves its first group the
// beginning of a number: it is not the rest of something longer.
func (r *run) mayOpen() bool {
	switch r.before(0) {
	case '.', '/', '_':
		return false
	case '-':
		i := r.groups[0].start - 1
		return i == 0 || r.b[i-1] == ' ' || r.b[i-1] == '\n' || r.b[i-1] == '\r' || r.b[i-1] == '\t' // of a list
	}
	return true
}

// isBehindDatum reports whether nothing but separators stands between b[i] and
// the end of the datum before it, or its mask.
func isBehindDatum(b []byte, i, edge int) bool {
	j := i
	for j > 0 && i-j < 8 && isSeparator(b[j-1]) {
		j--
	}
	if j == edge || j == 0 || b[j-1] != '>' {
		return j == edge && j > 0
	}
	from := max(0, j-maxMark)
	open := bytes.LastIndexByte(b[from:j], '<')
	return open >= 0 && markEnd(b, from+open) == j
}

// isAnnounced reports whether the word before b[i] says that a telephone number
// follows.
func isAnnounced(b []byte, i int) bool {
	for n := 0; n < 3 && i > 0 && (b[i-1] == ' ' || b[i-1] == ':' || b[i-1] == '.' || b[i-1] == '#'); n++ {
		i--
	}
	start := i
	for start > 0 && i-start < 12 && isLatin(b[start-1]) {
		start--
	}
	switch string(lower(b[start:i])) {
	case "tel", "telephone", "phone", "mobile", "cell", "fax", "fon", "telefon", "handy", "mobil", "call", "whatsapp",
		"sms", "ring":
		return true
	}
	return false
}
