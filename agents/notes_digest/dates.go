package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A date is a day that a note names.
type date struct {
	note     string
	line     int
	day      string // ISO: sorts as text
	deadline bool   // "due", "by", "until" or the like stands before it
	text     string // the line
}

// findDates finds days written as 2026-03-14, 2026/03/14, 14.03.2026,
// 14 March 2026 and March 14, 2026, month names in English or German.
// Slashes with the year last are left alone: nobody knows which is the month.
func findDates(line string) []date {
	var found []date
	for i := 0; i < len(line); {
		if !startsWord(line, i) {
			_, size := utf8.DecodeRuneInString(line[i:])
			i += size
			continue
		}
		day, n := dateAt(line[i:])
		if n == 0 {
			_, size := utf8.DecodeRuneInString(line[i:])
			i += size
			continue
		}
		found = append(found, date{day: day, deadline: namesDeadline(line[:i]), text: quote(line)})
		i += n
	}
	return found
}

// startsWord reports whether a date could begin at line[i].
func startsWord(line string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(line[:i])
	if i > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '-' || r == '/') {
		return false
	}
	next, _ := utf8.DecodeRuneInString(line[i:])
	return next >= '0' && next <= '9' || unicode.IsLetter(next)
}

// dateAt reads a date at the front of s and returns it in ISO form with the
// number of bytes it takes, or 0.
func dateAt(s string) (day string, n int) {
	for _, form := range []func(string) (y, m, d, n int){isoDate, dottedDate, dayMonthYear, monthDayYear} {
		if y, m, d, n := form(s); n > 0 && real(y, m, d) && endsWord(s[n:]) {
			return pad(y, 4) + "-" + pad(m, 2) + "-" + pad(d, 2), n
		}
	}
	return "", 0
}

// endsWord reports whether what follows a date leaves it one: not a further
// digit or letter, nor a further part ("1.2.2026.7").
func endsWord(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if size == 0 {
		return true
	}
	if unicode.IsDigit(r) || unicode.IsLetter(r) && r != 'T' {
		return false
	}
	after, _ := utf8.DecodeRuneInString(rest[size:])
	return !(strings.ContainsRune(".-/", r) && unicode.IsDigit(after))
}

func isoDate(s string) (y, m, d, n int) {
	if len(s) < 10 || s[4] != s[7] || s[4] != '-' && s[4] != '/' {
		return 0, 0, 0, 0
	}
	y, ny := digits(s[:4])
	m, nm := digits(s[5:7])
	d, nd := digits(s[8:10])
	if ny != 4 || nm != 2 || nd != 2 {
		return 0, 0, 0, 0
	}
	return y, m, d, 10
}

func dottedDate(s string) (y, m, d, n int) {
	d, nd := digits(s)
	if nd < 1 || nd > 2 || !strings.HasPrefix(s[nd:], ".") {
		return 0, 0, 0, 0
	}
	m, nm := digits(s[nd+1:])
	at := nd + 1 + nm
	if nm < 1 || nm > 2 || !strings.HasPrefix(s[at:], ".") {
		return 0, 0, 0, 0
	}
	y, ny := digits(s[at+1:])
	if ny != 4 {
		return 0, 0, 0, 0
	}
	return y, m, d, at + 1 + ny
}

func dayMonthYear(s string) (y, m, d, n int) {
	d, nd := digits(s)
	if nd < 1 || nd > 2 {
		return 0, 0, 0, 0
	}
	rest := strings.TrimLeft(ordinal(s[nd:]), " ")
	word := leadingWord(rest)
	m = month(word)
	rest = strings.TrimLeft(strings.TrimLeft(rest[len(word):], ".,"), " ")
	y, ny := digits(rest)
	if m == 0 || ny != 4 {
		return 0, 0, 0, 0
	}
	return y, m, d, len(s) - len(rest) + ny
}

func monthDayYear(s string) (y, m, d, n int) {
	word := leadingWord(s)
	rest := strings.TrimLeft(strings.TrimPrefix(s[len(word):], "."), " ")
	d, nd := digits(rest)
	if nd < 1 || nd > 2 {
		return 0, 0, 0, 0
	}
	rest = strings.TrimLeft(strings.TrimPrefix(ordinal(rest[nd:]), ","), " ")
	y, ny := digits(rest)
	m = month(word)
	if m == 0 || ny != 4 {
		return 0, 0, 0, 0
	}
	return y, m, d, len(s) - len(rest) + ny
}

// ordinal takes "st", "nd", "rd", "th" or a German "." from the front.
func ordinal(s string) string {
	for _, suffix := range []string{"st", "nd", "rd", "th", "."} {
		if rest, ok := strings.CutPrefix(s, suffix); ok {
			return rest
		}
	}
	return s
}

func digits(s string) (value, n int) {
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		value = value*10 + int(s[n]-'0')
		n++
	}
	return value, n
}

func leadingWord(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		return s[:i]
	}
	return s
}

// month returns 1 to 12 for a month's name or a short form of three letters or
// more, else 0.
func month(word string) int {
	word = strings.ToLower(word)
	if utf8.RuneCountInString(word) < 3 {
		return 0
	}
	for i, names := range [12]string{
		"january januar jänner", "february februar", "march märz", "april", "may mai", "june juni",
		"july juli", "august", "september", "october oktober", "november", "december dezember",
	} {
		for name := range strings.FieldsSeq(names) {
			if word == name || len(word) <= 4 && strings.HasPrefix(name, word) {
				return i + 1
			}
		}
	}
	return 0
}

// real reports whether there is such a day.
func real(y, m, d int) bool {
	if y < 1900 || y > 2199 || m < 1 || m > 12 || d < 1 {
		return false
	}
	length := 31
	switch m {
	case 4, 6, 9, 11:
		length = 30
	case 2:
		length = 28
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			length = 29
		}
	}
	return d <= length
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// namesDeadline reports whether the words before a date make it a deadline.
func namesDeadline(before string) bool {
	words := strings.FieldsFunc(strings.ToLower(tail(before)), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			r != '📅'
	})
	if n := len(words); n > 0 && (words[n-1] == "on" || words[n-1] == "am" || words[n-1] == "zum") {
		words = words[:n-1]
	}
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "due", "deadline", "by", "until", "till", "before", "fällig", "bis", "📅":
		return true
	}
	return false
}

// firstDeadline returns the day of the first deadline, or "".
func firstDeadline(dates []date) string {
	for _, d := range dates {
		if d.deadline {
			return d.day
		}
	}
	return ""
}

// quote is a line without its list, task, heading and table marks.
func quote(line string) string {
	s := strings.TrimLeft(line, " \t>#")
	s, _ = cutBullet(s)
	for _, mark := range []string{"[ ] ", "[x] ", "[X] "} {
		s = strings.TrimPrefix(s, mark)
	}
	return clean(trimMarker(strings.Trim(s, "| ")))
}
