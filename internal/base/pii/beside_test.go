package pii

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A form is how data of a sort are written: # is any digit, * one that is
// neither 0 nor 1.
var phoneForms = []string{
	"+49 170 #######", "+49 30 #######", "+49 (0)30 #######", "+49 (170) ###-####", "+49170#######", "+44 7700 9#####",
	"+44 20 7946 ####",
	"+33 6 ## ## ## ##", "+33.6.##.##.##.##", "+1 (*##) *##-####", "+1-*##-*##-####", "+1 *## *## ####",
	"(+49) 170 #######", "+(49) 170 #######", "+372 51# ####",
	"0049 170 #######", "0049170#######", "030 #######", "(030) #######", "0170 #######", "0170/#######", "0170-#######",
	"0170*######", "06 ## ## ## ##", "06.*#.##.##.##",
	"020 7946 ####", "(0117) 496 0###", "*##-*##-####", "(*##) *##-####", "*##.*##.####", "*## *## ####", "1-*##-*##-####",
	"1 (*##) *##-####",
}

func drawForm(t *rapid.T, form string) string {
	b := []byte(form)
	for i, c := range b {
		switch c {
		case '#':
			b[i] = byte('0' + rapid.IntRange(0, 9).Draw(t, "digit"))
		case '*':
			b[i] = byte('2' + rapid.IntRange(0, 7).Draw(t, "digit"))
		}
	}
	return string(b)
}

// drawDatum is a datum of any kind that is written with separators of its own.
func drawDatum(t *rapid.T) string {
	switch rapid.SampledFrom([]string{"phone", "phone", "phone", "card", "iban", "ssn", "email"}).Draw(t, "sort") {
	case "card":
		d := []byte(drawForm(t, rapid.SampledFrom([]string{"4###############", "55##############", "37#############"}).Draw(t,
			"card")))
		for c := byte('0'); c <= '9'; c++ {
			if d[len(d)-1] = c; isCard(d) {
				break
			}
		}
		sep := rapid.SampledFrom([]string{"", " ", "-"}).Draw(t, "sep")
		if len(d) == 15 {
			return string(d[:4]) + sep + string(d[4:10]) + sep + string(d[10:])
		}
		return string(d[:4]) + sep + string(d[4:8]) + sep + string(d[8:12]) + sep + string(d[12:])
	case "iban":
		body := drawForm(t, rapid.SampledFrom([]string{
			"DE00##################", "FR00####################K##",
			"GB00NWBK##############", "NL00ABNA##########",
		}).Draw(t, "iban"))
		for n := 2; n <= 98; n++ {
			if d := []byte(body[:2] + fmt.Sprintf("%02d", n) + body[4:]); isIBAN(d) {
				body = string(d)
				break
			}
		}
		if rapid.Bool().Draw(t, "in groups") {
			var parts []string
			for ; len(body) > 4; body = body[4:] {
				parts = append(parts, body[:4])
			}
			body = strings.Join(append(parts, body), " ")
		}
		return body
	case "ssn":
		return drawForm(t, "0**-*#-*###")
	case "email":
		return drawForm(t, rapid.SampledFrom([]string{
			"ada@example.org", "ada.###@example.org", "#########@example.org",
			"ada@##########.example.org",
		}).Draw(t, "email"))
	}
	return drawForm(t, rapid.SampledFrom(phoneForms).Draw(t, "form"))
}

// digitsOf are the digits of what is left of a text without its masks, and of
// each way to read on over what separates.
func longestShared(out, datum string) string {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if isSeparator(byte(r)) && r < 0x80 {
				return -1
			}
			return r
		}, s)
	}
	for _, m := range Marks([]byte(out)) {
		out = strings.ReplaceAll(out, m, "\n")
	}
	rest, best := clean(out), ""
	d := clean(datum)
	for i := range d {
		for j := i + 1; j <= len(d) && isDigits([]byte(d[i:j])); j++ {
			if j-i > len(best) && strings.Contains(rest, d[i:j]) {
				best = d[i:j]
			}
		}
	}
	return best
}

// Data beside one another are masked each: whatever separates them, no five
// digits of one can be read; where what separates is no part of numbers, each has
// the mask that it has alone.
//
//rlp:holds R26
func TestBesideOneAnother(t *testing.T) {
	m := New(testKey)
	mask := func(s string) string { return string(m.mask("notes", []byte(s))) }
	apart := []string{", ", ",", "\n", "\t", "; ", " and ", " | ", "\r\n", " or "}
	close := []string{" ", "/", " / ", " - ", "  ", ") (", ")(", " (", "; (", " -- ", " . ", " 1. ", " 2) "}
	rapid.Check(t, func(t *rapid.T) {
		var all, marks []string
		for range rapid.IntRange(2, 6).Draw(t, "data") {
			d := drawDatum(t)
			alone := mask(d)
			if got := longestShared(alone, d); len(got) >= 5 && !strings.Contains(d, "@") {
				t.Fatalf("control: %q alone is %q", d, alone)
			}
			found := Marks([]byte(alone))
			if len(found) != 1 {
				t.Fatalf("control: %q alone is %q", d, alone)
			}
			all, marks = append(all, d), append(marks, found[0])
		}
		isApart := rapid.Bool().Draw(t, "apart")
		seps := close
		if isApart {
			seps = apart
		}
		sep := rapid.SampledFrom(seps).Draw(t, "separator")
		value := strings.Join(all, sep)
		switch wrap := rapid.SampledFrom([]string{"", "()", "1.", "-", "x"}).Draw(t, "around"); wrap {
		case "()":
			value = "(" + strings.Join(all, ")"+strings.Trim(sep, "()")+"(") + ")"
		case "1.":
			value = ""
			for i, d := range all {
				value += fmt.Sprintf("%d. %s%s", i+1, d, sep)
			}
		case "-":
			value = "- " + strings.Join(all, "\n- ")
		case "x":
			value = "call " + value + " now"
		}
		out := mask(value)
		for i, d := range all {
			if got := longestShared(out, d); len(got) >= 5 {
				t.Fatalf("%q: %q of %q is readable in %q", value, got, d, out)
			}
			if isApart && !strings.Contains(out, marks[i]) {
				t.Fatalf("%q: %q is not %s in %q", value, d, marks[i], out)
			}
		}
		if again := mask(out); again != out {
			t.Fatalf("not idempotent: %q, %q, %q", value, out, again)
		}
	})
}

// What a reader of a list expects of it, number by number.
func TestLists(t *testing.T) {
	phone := func(s string) string { return markOf(Phone, s) }
	a, b := phone("+491701234567"), phone("+491707654321")
	us, other := phone("+14155550132"), phone("+14155550133")
	for _, c := range []struct{ in, want string }{
		{"+49 170 1234567 +49 170 7654321", a + " " + b},
		{"+49 170 1234567 +49 170 7654321 +49 170 1234567 +49 170 7654321", a + " " + b + " " + a + " " + b},
		{"+491701234567+491707654321", a + b},
		{"+49+170+1234567++49+170+7654321", a + "+" + b},
		{"(+49 170 1234567)(+49 170 7654321)", "(" + a + ")(" + b + ")"},
		{"+49 170 1234567-+49 170 7654321", a + "-" + b},
		{"1.+49 170 1234567 2.+49 170 7654321", "1." + a + " 2." + b},
		{"1. 0170 1234567 2. 0170 7654321", "1. " + phone("01701234567") + " 2. " + phone("01707654321")},
		{"+44 7700 900123 +44 7700 900456", phone("+447700900123") + " " + phone("+447700900456")},
		{"+33 6 12 34 56 78 +33 6 98 76 54 32", phone("+33612345678") + " " + phone("+33698765432")},
		{"06 12 34 56 78 06 98 76 54 32", phone("0612345678") + " " + phone("0698765432")},
		{"415-555-0132 415-555-0133", us + " " + other},
		{"415-555-0132/415-555-0133", us + "/" + other},
		{"+1 (415) 555-0132 (415) 555-0133", us + " " + other},
		{"020 7946 0958 020 7946 0959", phone("02079460958") + " " + phone("02079460959")},
		{"030 1234567-0, 030 1234567-0", phone("03012345670") + ", " + phone("03012345670")},
		{"030 1234567 4567@example.org", phone("0301234567") + " " + markOf(Email, "4567@example.org")},
		{"a@b.cd/0170 1234567", markOf(Email, "a@b.cd") + "/" + phone("01701234567")},
		{"078-05-1120/078-05-1121", markOf(ID, "078051120") + "/" + markOf(ID, "078051121")},
		{"4111 1111 1111 1111 078-05-1120", markOf(Card, "4111111111111111") + " " + markOf(ID, "078051120")},
		{"Tel: 555-1234 555-4321", "Tel: " + phone("5551234") + " " + phone("5554321")},
		{"Phone: +49 170 1234567, +49 170 7654321\n", "Phone: " + a + ", " + b + "\n"},
		{`{"phone":"+49 170 1234567 / +49 170 7654321"}`, `{"phone":"` + a + ", " + b + `"}`},
		{`{"phone":"+49 170 1234567 (office)"}`, `{"phone":"` + a + `"}`},
		{`{"phone":"+"}`, `{"phone":"` + phone("") + `"}`},
		{"+14155550132x12", us + "x12"},
		{"415-555-0132x12", us + "x12"},
		{"phone_+491701234567_home", "phone_" + a + "_home"},
		{"card_4111111111111111_old", "card_" + markOf(Card, "4111111111111111") + "_old"},
		{"phone+is+030+1234567", "phone+is" + phone("0301234567")},
	} {
		if got := masked(t, "notes", c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
	for _, in := range []string{
		"abc+14155550132x12", "4111111111111111a", "0301234567b", "ISBN 0-306-40615-2",
		"x-0301234567", "/0301234567",
	} {
		if got := masked(t, "notes", in); got != in {
			t.Errorf("control: %q became %q", in, got)
		}
	}
}

// However long the list is, each number in it has the mask that it has alone.
func TestLongList(t *testing.T) {
	for _, one := range []string{
		"+49 170 1234567", "0170 1234567", "06 12 34 56 78", "415-555-0132",
		"4111 1111 1111 1111", "078-05-1120", "DE89 3704 0044 0532 0130 00",
	} {
		want := masked(t, "notes", one)
		for _, n := range []int{2, 3, 7, 50, 1000} {
			in := strings.TrimSpace(strings.Repeat(one+" ", n))
			if got := masked(t, "notes", in); got != strings.TrimSpace(strings.Repeat(want+" ", n)) {
				t.Errorf("%d times %q is %.200q", n, one, got)
			}
		}
	}
	if out := New(testKey).Mask("notes", bytes.Repeat([]byte("0170 1234567 "), 1<<16)); bytes.ContainsAny(out,
		"0123456789") {
		t.Error("digits are left of a long list")
	}
}
