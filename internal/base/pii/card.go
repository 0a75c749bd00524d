package pii

// offerCards are the cards and the numbers of papers that begin with group g.
func (r *run) offerCards(g int, c *choices) {
	n := 0
	for h := g; h < len(r.groups); {
		if h > g && !r.joinsCard(g, h) {
			break
		}
		n += r.size(h)
		h++
		if n > mostCard {
			break
		}
		if n >= leastCard && isCard(r.all(g, h)) {
			c.offer(h, Card, costCheck)
		}
	}
	if r.isSocial(g) {
		c.offer(g+3, ID, costCheck)
	}
}

const (
	leastCard = 14
	mostCard  = 19
)

// joinsCard reports whether group h may go on with the card that begins with g.
func (r *run) joinsCard(g, h int) bool {
	return (r.before(h) == ' ' || r.before(h) == '-') && r.size(g) >= 4 && r.size(h) >= 3
}

func isCard(d []byte) bool {
	switch n := len(d); {
	case n == 16 && (d[0] == '4' || d[0] == '5' || d[0] == '6' || d[0] == '2' && d[1] >= '2' && d[1] <= '7' ||
		d[0] == '3' && d[1] == '5'):
	case n == 15 && d[0] == '3' && (d[1] == '4' || d[1] == '7'):
	case n == 14 && d[0] == '3' && (d[1] == '0' || d[1] == '6' || d[1] == '8' || d[1] == '9'):
	case (n == 18 || n == 19) && (d[0] == '4' || d[0] == '5' || d[0] == '6'):
	default:
		return false
	}
	sum := 0
	for i := range d {
		x := int(d[len(d)-1-i] - '0')
		if i&1 == 1 {
			if x *= 2; x > 9 {
				x -= 9
			}
		}
		sum += x
	}
	return sum%10 == 0
}

// isSocial reports whether the groups from g on are written as an American
// social security number is.
func (r *run) isSocial(g int) bool {
	if g+3 > len(r.groups) || r.size(g) != 3 || r.size(g+1) != 2 || r.size(g+2) != 4 || r.before(g+1) != '-' ||
		r.before(g+2) != '-' {
		return false
	}
	area := r.digits(g)
	return string(area) != "000" && string(area) != "666" && area[0] != '9' && string(r.digits(g+1)) != "00" &&
		string(r.digits(g+2)) != "0000"
}
