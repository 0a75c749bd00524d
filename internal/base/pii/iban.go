package pii

// ibanAt finds the account number whose two check digits begin at b[i], and
// returns where it ends and its normal form.
func ibanAt(b []byte, i int) (int, []byte) {
	if i < 2 || i+2 > len(b) || !isLatin(b[i-1]) || !isLatin(b[i-2]) || i > 2 && isAlnum(b[i-3]) || i+1 >= len(b) ||
		!isDigit(b[i+1]) {
		return 0, nil
	}
	if n := ibanLength(b[i-2]&^0x20, b[i-1]&^0x20); n > 0 {
		if end, datum := ibanOf(b, i, n, n); end > 0 {
			return end, datum
		}
	}
	return ibanOf(b, i, leastIBAN, mostIBAN) // a country that joined since
}

const (
	leastIBAN = 15
	mostIBAN  = 34
)

// ibanOf is ibanAt for numbers of least to most characters.
func ibanOf(b []byte, i, least, most int) (int, []byte) {
	datum := make([]byte, 0, mostIBAN)
	for j := i - 2; j < len(b) && len(datum) < most; j++ {
		c := b[j]
		if (c == ' ' || c == '-' || c == '+') && len(datum) >= 4 && j+1 < len(b) && isAlnum(b[j+1]) {
			continue
		}
		if !isAlnum(c) {
			break
		}
		if c >= 'a' {
			c &^= 0x20
		}
		datum = append(datum, c)
		isEnd := j+1 == len(b) || !isAlnum(b[j+1])
		if isEnd && len(datum) >= least && isIBAN(datum) {
			return j + 1, datum
		}
	}
	return 0, nil
}

// ibanLength is the length of the account numbers of a country, 0 when it is not
// known. The first characters of a number may have right check digits as well.
func ibanLength(x, y byte) int {
	switch string([]byte{x, y}) {
	case "NO":
		return 15
	case "BE", "BI":
		return 16
	case "DK", "FO", "FI", "GL", "NL", "SD", "FK":
		return 18
	case "MK", "SI":
		return 19
	case "AT", "BA", "EE", "KZ", "LT", "LU", "XK", "MN":
		return 20
	case "HR", "LV", "LI", "CH":
		return 21
	case "BH", "BG", "CR", "GE", "DE", "IE", "ME", "RS", "GB", "VA":
		return 22
	case "GI", "IQ", "IL", "AE", "TL", "SO", "OM":
		return 23
	case "AD", "CZ", "MD", "PK", "RO", "SA", "SK", "ES", "SE", "TN", "VG":
		return 24
	case "PT", "ST":
		return 25
	case "IS", "TR":
		return 26
	case "FR", "GR", "IT", "MR", "MC", "SM", "DJ":
		return 27
	case "AL", "AZ", "BY", "CY", "DO", "SV", "GT", "HU", "LB", "PL", "NI":
		return 28
	case "BR", "PS", "QA", "UA":
		return 29
	case "JO", "KW", "MU", "YE":
		return 30
	case "MT", "SC":
		return 31
	case "LC":
		return 32
	case "RU":
		return 33
	}
	return 0
}

func isLatin(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isIBAN checks the check digits: the rest of the division by 97, the first
// four characters moved to the end.
func isIBAN(d []byte) bool {
	rest := 0
	for i := range d {
		c := d[(i+4)%len(d)]
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest == 1
}
