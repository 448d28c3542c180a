// Package pcapfilter compiles filters in the words of tcpdump, pcap-filter(7), to classic BPF.
//
//	text --words--> parser --tree--> builder --instructions--> Filter
//
// A filter that compiles takes the packets that tcpdump takes, also of those that end early: a load behind the end of the
// packet rejects it, except that the optimizer of libpcap may leave out such a load. What does not compile is refused with the place and the word: what libpcap refuses, what needs more
// than the packet (names of hosts and ports, the netmask), and the parts of the language that are not built here. The tests
// compare with tcpdump.
package pcapfilter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// MaxText is the longest filter, in bytes.
const MaxText = 2048

// maxProgram is the longest program, in instructions (BPF_MAXINSNS of Linux).
const maxProgram = 4096

// A Link is what packets begin with.
type Link uint8

// Links.
const (
	Ethernet Link = iota
	RawIP         // with the header of IPv4 or IPv6
)

func (l Link) String() string {
	if l == RawIP {
		return "raw IP"
	}
	return "Ethernet"
}

// An Error is what is wrong with a filter.
type Error struct {
	Column int    // from 1, in bytes
	Word   string // there; empty at the end of the filter
	Text   string
}

func (e *Error) Error() string {
	if e.Word == "" {
		return fmt.Sprintf("filter, at the end: %s", e.Text)
	}
	return fmt.Sprintf("filter, column %d: %q: %s", e.Column, e.Word, e.Text)
}

// Compile returns the program for packets of a link. It returns 0 to reject a packet. An empty filter takes all.
func Compile(text string, l Link) ([]bpf.Instruction, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("filter of %d bytes: must have at most %d", len(text), MaxText)
	}
	list, err := words(text)
	if err != nil {
		return nil, err
	}
	p := parser{list: list, link: l}
	root := node(constant(true))
	if len(list) > 1 {
		if root, err = p.parse(); err != nil {
			return nil, err
		}
	}
	if root == constant(false) {
		return nil, fmt.Errorf("filter: rejects all packets: they begin with %v", l)
	}
	return build(root)
}

// A Filter is a program that is ready to run. Many goroutines may use it.
type Filter struct{ vm *bpf.VM }

// New compiles a filter.
func New(text string, l Link) (*Filter, error) {
	list, err := Compile(text, l)
	if err != nil {
		return nil, err
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return &Filter{vm}, nil
}

// Match reports whether the filter takes a packet, which must be whole. It does not allocate.
func (f *Filter) Match(packet []byte) bool {
	n, err := f.vm.Run(packet)
	return n != 0 && err == nil
}
