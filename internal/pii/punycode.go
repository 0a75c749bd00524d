package pii

import "unicode/utf8"

// appendASCII appends a lower-case domain with its labels as DNS has them:
// those that are not ASCII in punycode.
func appendASCII(out, domain []byte) []byte {
	for len(domain) > 0 {
		n := 0
		isASCII := true
		for n < len(domain) && domain[n] != '.' {
			isASCII = isASCII && domain[n] < utf8.RuneSelf
			n++
		}
		if isASCII {
			out = append(out, domain[:n]...)
		} else {
			out = appendPunycode(append(out, "xn--"...), domain[:n])
		}
		if n < len(domain) {
			out = append(out, '.')
			n++
		}
		domain = domain[n:]
	}
	return out
}

// appendPunycode appends a label as RFC 3492 encodes it. Labels are short: the
// work grows with their square.
func appendPunycode(out, label []byte) []byte {
	runes := []rune(string(label))
	before := len(out)
	for _, r := range runes {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	basic := len(out) - before
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(128), 0, 72
	for done := basic; done < len(runes); n++ {
		next := rune(utf8.MaxRune + 1)
		for _, r := range runes {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			out = appendVariable(out, delta, bias)
			bias = adapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
	}
	return out
}

const (
	punyBase = 36
	punyMin  = 1
	punyMax  = 26
)

func appendVariable(out []byte, q, bias int) []byte {
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	for k := punyBase; ; k += punyBase {
		t := min(max(k-bias, punyMin), punyMax)
		if q < t {
			return append(out, digits[q])
		}
		out = append(out, digits[t+(q-t)%(punyBase-t)])
		q = (q - t) / (punyBase - t)
	}
}

func adapt(delta, points int, isFirst bool) int {
	if isFirst {
		delta /= 700
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+38)
}
