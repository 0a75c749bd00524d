package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// A message is one netlink message without its header.
type message struct {
	kind, flags uint16
	body        []byte
}

// create are the flags of what makes something that must not be there yet.
const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK

// encode is list as a socket takes it, numbered from 1.
func encode(list []message) []byte {
	var out []byte
	for i, m := range list {
		out = binary.NativeEndian.AppendUint32(out, uint32(unix.NLMSG_HDRLEN+len(m.body)))
		out = binary.NativeEndian.AppendUint16(out, m.kind)
		out = binary.NativeEndian.AppendUint16(out, m.flags|unix.NLM_F_REQUEST)
		out = binary.NativeEndian.AppendUint32(out, uint32(i+1))
		out = append(out, 0, 0, 0, 0)
		out = append(out, m.body...)
	}
	return out
}

// attribute is one attribute that holds parts, padded as the kernel wants it.
func attribute(kind uint16, parts ...[]byte) []byte {
	value := slices.Concat(parts...)
	out := binary.NativeEndian.AppendUint16(nil, uint16(unix.NLA_HDRLEN+len(value)))
	out = binary.NativeEndian.AppendUint16(out, kind)
	out = append(out, value...)
	return append(out, make([]byte, -len(out)&(unix.NLA_ALIGNTO-1))...)
}

// nested is an attribute that holds attributes.
func nested(kind uint16, parts ...[]byte) []byte { return attribute(kind|unix.NLA_F_NESTED, parts...) }

func text(kind uint16, s string) []byte { return attribute(kind, []byte(s), []byte{0}) }

// number is an attribute in the byte order of nftables.
func number(kind uint16, v uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, v))
}

// patience is how long the kernel may take to answer, in seconds.
const patience = 10

// ask sends list over the netlink protocol proto, and waits until each message
// that wants an answer has it. An error names the message by its place.
func ask(proto int, list []message) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, encode(list), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	waiting := 0
	for _, m := range list {
		if m.flags&unix.NLM_F_ACK != 0 {
			waiting++
		}
	}
	buf := make([]byte, 32<<10)
	for waiting > 0 {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		answered, err := answers(buf[:n])
		if err != nil {
			return err
		}
		waiting -= answered
	}
	return nil
}

var errAnswer = errors.New("the kernel's answer is cut off")

// answers counts the acknowledgements in what the kernel said, or is the first
// error in it.
func answers(b []byte) (acks int, err error) {
	for len(b) > 0 {
		if len(b) < unix.NLMSG_HDRLEN {
			return acks, errAnswer
		}
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return acks, errAnswer
		}
		if binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR {
			if size < unix.NLMSG_HDRLEN+4 {
				return acks, errAnswer
			}
			if errno := int32(binary.NativeEndian.Uint32(b[unix.NLMSG_HDRLEN:])); errno != 0 {
				return acks, fmt.Errorf("message %d: %w", binary.NativeEndian.Uint32(b[8:]), unix.Errno(-errno))
			}
			acks++
		}
		b = b[min(len(b), (size+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1)):]
	}
	return acks, nil
}
