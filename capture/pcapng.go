package capture

import (
	"bufio"
	"encoding/binary"
	"io"
	"time"
)

// A pcapng writes a file of the format pcapng (draft-ietf-opsawg-pcapng), little-endian and with times in nanoseconds. gopacket
// would do it too, but whoever imports its layers has 7 MiB of tables in memory before main begins.
type pcapng struct {
	w          *bufio.Writer
	block      []byte // the one being made, without data
	interfaces int
}

// Types of blocks.
const (
	sectionBlock    = 0x0a0d0d0a
	interfaceBlock  = 1
	statisticsBlock = 5
	packetBlock     = 6
)

// Link types of interfaces.
const (
	linkEthernet = 1
	linkRaw      = 101 // IPv4 or IPv6
)

// newPcapng makes one and begins its only section.
func newPcapng(w io.Writer) (*pcapng, error) {
	const length = 1<<32 - 1 // twice: not known
	p := &pcapng{w: bufio.NewWriter(w)}
	p.begin(sectionBlock, 0x1a2b3c4d, 1, length, length)
	p.option(4, []byte("vxswitch")) // shb_userappl
	return p, p.end()
}

// An ngInterface is what is written of an interface. Empty values are not.
type ngInterface struct {
	name, description, filter string
	link                      uint16
	snap                      int
}

// addInterface writes an interface and returns its number.
func (p *pcapng) addInterface(i ngInterface) (int, error) {
	p.begin(interfaceBlock, uint32(i.link), uint32(i.snap))
	for _, o := range []struct {
		code  uint16
		value string
	}{{2, i.name}, {3, i.description}} { // if_name, if_description
		if o.value != "" {
			p.option(o.code, []byte(o.value))
		}
	}
	if i.filter != "" {
		p.option(11, append([]byte{0}, i.filter...)) // if_filter, as libpcap has it
	}
	p.option(9, []byte{9}) // if_tsresol
	p.interfaces++
	return p.interfaces - 1, p.end()
}

// packet writes a packet of an interface, of which data is kept.
func (p *pcapng) packet(i int, nanoseconds int64, data []byte, length int) error {
	high, low := halves(nanoseconds)
	p.begin(packetBlock, uint32(i), high, low, uint32(len(data)), uint32(length))
	padding := -len(data) & 3
	size := uint32(len(p.block) + len(data) + padding + 4)
	binary.LittleEndian.PutUint32(p.block[4:], size)
	if _, err := p.w.Write(p.block); err != nil {
		return err
	}
	if _, err := p.w.Write(data); err != nil {
		return err
	}
	p.block = binary.LittleEndian.AppendUint32(append(p.block[:0], 0, 0, 0)[:padding], size)
	_, err := p.w.Write(p.block)
	return err
}

// statistics writes the counts of an interface: what was received, and what of it was dropped.
func (p *pcapng) statistics(i int, begun, ended time.Time, received, dropped uint64) error {
	high, low := halves(ended.UnixNano())
	p.begin(statisticsBlock, uint32(i), high, low)
	for _, o := range []struct {
		code uint16
		time time.Time
	}{{2, begun}, {3, ended}} { // isb_starttime, isb_endtime
		high, low := halves(o.time.UnixNano())
		p.option(o.code, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, high), low))
	}
	p.option(5, binary.LittleEndian.AppendUint64(nil, dropped))  // isb_ifdrop
	p.option(4, binary.LittleEndian.AppendUint64(nil, received)) // isb_ifrecv
	return p.end()
}

// halves are those of a time, in nanoseconds since 1970.
func halves(t int64) (high, low uint32) { return uint32(t >> 32), uint32(t) }

// begin begins a block, whose length comes with its end.
func (p *pcapng) begin(kind uint32, body ...uint32) {
	p.block = binary.LittleEndian.AppendUint32(p.block[:0], kind)
	p.block = append(p.block, 0, 0, 0, 0)
	for _, x := range body {
		p.block = binary.LittleEndian.AppendUint32(p.block, x)
	}
}

// option appends an option to the block. Longer values than an option can have are cut.
func (p *pcapng) option(code uint16, value []byte) {
	value = value[:min(len(value), 1<<16-1)]
	p.block = binary.LittleEndian.AppendUint16(p.block, code)
	p.block = binary.LittleEndian.AppendUint16(p.block, uint16(len(value)))
	p.block = append(p.block, value...)
	p.block = append(p.block, 0, 0, 0)[:len(p.block)+-len(value)&3]
}

// end ends a block with options.
func (p *pcapng) end() error {
	p.block = append(p.block, 0, 0, 0, 0) // opt_endofopt
	size := uint32(len(p.block) + 4)
	p.block = binary.LittleEndian.AppendUint32(p.block, size)
	binary.LittleEndian.PutUint32(p.block[4:], size)
	_, err := p.w.Write(p.block)
	return err
}

func (p *pcapng) flush() error { return p.w.Flush() }
