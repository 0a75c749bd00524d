package program

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/connect"
)

// mostPublished is how many ports of the host lead to one program.
const mostPublished = 8

// Published is the place that a port of the host leads to, as policies name it: whoever
// publishes the port asks for it, and a layer that does not leave it refuses.
func Published(port uint) string { return "publish.rlp:" + strconv.Itoa(int(port)) }

// leaves reports whether what a run holds lets a port of the host lead to its program.
func leaves(holds caps.Set, port uint) bool {
	return holds.Check(caps.Request{Family: caps.Net, Mode: caps.Bytes, Name: Published(port)}).Allow &&
		holds.Check(caps.Request{Family: caps.Tool, Name: connect.InwardTool}).Allow
}

// Unpublished says which of ports a layer took.
func Unpublished(holds caps.Set, ports []uint) (list []string) {
	for _, port := range ports {
		if !leaves(holds, port) {
			list = append(list, fmt.Sprintf("--publish %d has no effect: a layer does not leave network:tcp:%s, or the tool %s",
				port, Published(port), connect.InwardTool))
		}
	}
	return list
}

// Publishable refuses ports that are not a program's to have: those that take privilege,
// and the one at which operators look for the pages of rlp itself.
func Publishable(ports []uint, own string) error {
	listen := own[strings.LastIndexByte(own, ':')+1:]
	for i, port := range ports {
		switch {
		case port < 1024 || port > math.MaxUint16:
			return fmt.Errorf("%d: take a port from 1024 to 65535", port)
		case strconv.Itoa(int(port)) == listen:
			return fmt.Errorf("%d: that is the port of rlp serve (serve.listen = %q); take another one", port, own)
		case slices.Contains(ports[:i], port):
			return fmt.Errorf("%d: it is given twice", port)
		case i == mostPublished:
			return fmt.Errorf("%d: at most %d ports lead to a program", port, mostPublished)
		}
	}
	return nil
}
