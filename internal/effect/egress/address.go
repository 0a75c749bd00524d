package egress

import (
	"fmt"
	"net/netip"
)

// A class says who may reach an address.
type class uint8

const (
	public  class = iota
	special       // reached only by who was granted this very address
	never
)

// A block is the addresses that begin with bits bits of prefix.
type block struct {
	prefix [16]byte
	bits   int
	class  class
	name   string
}

// blocks4 are the IPv4 addresses that are not public, the narrower ones first:
// RFC 6890 and its registry, and where clouds keep their credentials.
var blocks4 = [...]block{
	{[16]byte{100, 100, 100, 200}, 32, never, "cloud metadata"},
	{[16]byte{192, 0, 0, 192}, 32, never, "cloud metadata"},
	{[16]byte{168, 63, 129, 16}, 32, never, "cloud metadata"},
	{[16]byte{255, 255, 255, 255}, 32, never, "broadcast"},
	{[16]byte{0}, 8, never, "unspecified"},
	{[16]byte{169, 254}, 16, never, "link-local"},
	{[16]byte{224}, 4, never, "multicast"},
	{[16]byte{240}, 4, never, "reserved"},
	{[16]byte{127}, 8, special, "loopback"},
	{[16]byte{10}, 8, special, "private"},
	{[16]byte{172, 16}, 12, special, "private"},
	{[16]byte{192, 168}, 16, special, "private"},
	{[16]byte{100, 64}, 10, special, "shared by a carrier"},
	{[16]byte{192, 0, 0}, 24, special, "for protocols"},
	{[16]byte{192, 0, 2}, 24, special, "for documentation"},
	{[16]byte{198, 51, 100}, 24, special, "for documentation"},
	{[16]byte{203, 0, 113}, 24, special, "for documentation"},
	{[16]byte{192, 88, 99}, 24, special, "for relays"},
	{[16]byte{198, 18}, 15, special, "for benchmarks"},
}

// blocks6 are the IPv6 addresses that have a name of their own, the narrower
// ones first. What is in none of them is public within 2000::/3 and reserved
// outside.
var blocks6 = [...]block{
	{[16]byte{0xfd, 0x00, 0x0e, 0xc2, 14: 0x02, 15: 0x54}, 128, never, "cloud metadata"},
	{[16]byte{0xfd, 0x20, 0x00, 0xce, 14: 0x02, 15: 0x54}, 128, never, "cloud metadata"},
	{[16]byte{15: 1}, 128, special, "loopback"},
	{[16]byte{}, 128, never, "unspecified"},
	{[16]byte{}, 96, never, "an IPv4 address in disguise"},
	{[16]byte{0xfe, 0x80}, 10, never, "link-local"},
	{[16]byte{0xff}, 8, never, "multicast"},
	{[16]byte{0xfc}, 7, special, "private"},
	{[16]byte{0x20, 0x01, 0x0d, 0xb8}, 32, special, "for documentation"},
	{[16]byte{0x3f, 0xff}, 20, special, "for documentation"},
	{[16]byte{0x20, 0x01}, 32, never, "a tunnel (Teredo)"},
	{[16]byte{0x20, 0x01}, 23, never, "for protocols"},
	{[16]byte{0x20, 0x02}, 16, never, "a tunnel (6to4)"},
	{[16]byte{0x20}, 3, public, "public"},
}

// translated is 64:ff9b::/96, by which networks that only speak IPv6 reach IPv4
// addresses: what counts is the address inside.
var translated = block{[16]byte{0x00, 0x64, 0xff, 0x9b}, 96, never, "an IPv4 address in disguise"}

func judge(a netip.Addr) (class, string) {
	a = a.WithZone("").Unmap()
	if a.Is4() {
		b := a.As4()
		for i := range blocks4 {
			if blocks4[i].holds(b[:]) {
				return blocks4[i].class, blocks4[i].name
			}
		}
		return public, "public"
	}
	if !a.Is6() {
		return never, "no address"
	}
	b := a.As16()
	if translated.holds(b[:]) {
		if c, name := judge(netip.AddrFrom4([4]byte(b[12:]))); c != public {
			return never, name + ", by way of IPv6"
		}
		return public, "public"
	}
	for i := range blocks6 {
		if blocks6[i].holds(b[:]) {
			return blocks6[i].class, blocks6[i].name
		}
	}
	return never, "reserved"
}

func (b *block) holds(a []byte) bool {
	whole := b.bits / 8
	for i := range whole {
		if a[i] != b.prefix[i] {
			return false
		}
	}
	rest := b.bits % 8
	return rest == 0 || (a[whole]^b.prefix[whole])>>(8-rest) == 0
}

// An AddressError says that an address may not be reached. Its text is for the
// operator: it names an address that the guest may not know.
type AddressError struct {
	Host string // as the request has it
	Addr netip.Addr
	Name string // what kind of address it is
}

func (e *AddressError) Error() string {
	if e.Addr.String() == e.Host {
		return fmt.Sprintf("%s is %s", e.Host, e.Name)
	}
	return fmt.Sprintf("%s is %s, which is %s", e.Host, e.Addr, e.Name)
}

// AddressNotPermitted marks e as a refusal for the sake of an address.
func (e *AddressError) AddressNotPermitted() {}

// vet refuses a when it may not be reached; named says that a grant has this
// very address, or localhost, in it.
func vet(host string, a netip.Addr, named bool) error {
	c, name := judge(a)
	if c == public || c == special && named {
		return nil
	}
	return &AddressError{Host: host, Addr: a, Name: name}
}
