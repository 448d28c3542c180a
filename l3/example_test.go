package l3_test

import (
	"encoding/binary"
	"fmt"
	"log"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A stage goes into a slot of a segment; the switch asks it.
func ExampleNewTooBig() {
	toobig, err := l3.NewTooBig(nil)
	if err != nil {
		log.Fatal(err)
	}
	sw, err := vswitch.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer sw.Close()
	if _, err := sw.VSI(100, &vswitch.VSIConfig{Slots: vswitch.Slots{TooBig: toobig}}); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", toobig.Stats().Sent4)
	// Output: 0
}

// What the stage does with one frame: a full-sized packet on its way into a tunnel
// that takes 1464 bytes.
func ExampleTooBig_Process() {
	toobig, err := l3.NewTooBig(&l3.TooBigConfig{PerSender: 1})
	if err != nil {
		log.Fatal(err)
	}
	packet := make([]byte, 14+1500)
	copy(packet, []byte{
		2, 0, 0, 0, 0, 0xb, // to
		2, 0, 0, 0, 0, 0xa, // from
		8, 0, // IPv4
		0x45, 0, 1500 >> 8, 1500 & 0xff, 0, 0, 0x40, 0, // DF
		64, 17, 0xa5, 0xbd, // UDP, checksum
		192, 168, 7, 1, // from
		192, 168, 7, 2, // to
	})
	for range 2 {
		f := frame.Make(packet)
		f.From = frame.NewDest(1, 0) // port 1
		fmt.Println(toobig.Process(&f, frame.At{MTU: 1464}))
		if b := f.Bytes(); len(b) < len(packet) {
			fmt.Println("to", frame.MAC(b), "from", frame.MAC(b[6:]))
			fmt.Println("ICMP type", b[34], "code", b[35], "MTU", binary.BigEndian.Uint16(b[40:]))
		}
	}
	// Output:
	// reply
	// to 02:00:00:00:00:0a from 02:00:00:00:00:0b
	// ICMP type 3 code 4 MTU 1450
	// drop too-big
}
