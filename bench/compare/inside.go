package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// inside runs the senders and receivers of the cases rr, udp64, udp1400 and pairs, for which
// the program executes itself inside a guest, and a tunnel inside a host:
//
//	echo ADDR                      answers bytes
//	rr ADDR DURATION               sends them
//	sink ADDR SIZE                 counts packets
//	blast ADDR SIZE DURATION PPS   sends them; PPS 0: as fast as it can
//	talk DEV END PAIRS RUN DURATION PPS
//	                               sends packets of many pairs of hosts
//	hear DEV                       counts them
//	lone LOCAL REMOTE MTU          IP in IP without batches
//	end UNDERLAY LOCAL REMOTE      VXLAN over either underlay
//	flows ADDR                     sends a packet of each of many flows
//	ports DEV                      counts their outer source ports
//
// What they measured they print as a line of JSON. inside reports whether args asked
// for one of them.
func inside(args []string) bool {
	var err error
	switch {
	case len(args) == 2 && args[0] == "echo":
		var ln net.Listener
		if ln, err = net.Listen("tcp", args[1]); err == nil {
			fmt.Println("ready")
			err = echo(ln)
		}
	case len(args) == 3 && args[0] == "rr":
		var d time.Duration
		if d, err = time.ParseDuration(args[2]); err == nil {
			var t transactions
			if t, err = request(args[1], d); err == nil {
				err = say(t)
			}
		}
	case len(args) == 3 && args[0] == "sink":
		err = insideSink(args[1], args[2])
	case len(args) == 5 && args[0] == "blast":
		err = insideBlast(args[1], args[2], args[3], args[4])
	case len(args) == 7 && args[0] == "talk":
		err = insideTalk(args[1], args[2], args[3], args[4], args[5], args[6])
	case len(args) == 2 && args[0] == "hear":
		var f *os.File
		if f, err = hear(args[1]); err == nil {
			err = count(f, talkHead, talkSize)
		}
	case len(args) == 4 && args[0] == "lone":
		err = lone(args[1], args[2], args[3])
	case len(args) == 4 && args[0] == "end":
		err = runEnd(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "flows":
		err = sendFlows(args[1])
	case len(args) == 2 && args[0] == "ports":
		var s spread
		if s, err = countPorts(args[1]); err == nil {
			err = say(s)
		}
	default:
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	return true
}

// sinkSilent is how long a sender may be silent before it counts as gone.
const sinkSilent = 2 * time.Second

func insideSink(addr, size string) error {
	n, err := payload(size)
	if err != nil {
		return err
	}
	f, _, err := listen(addr)
	if err != nil {
		return err
	}
	return count(f, 0, n)
}

// count is sink on a socket of its own, with what it counted as text.
func count(f *os.File, at, size int) error {
	defer f.Close()
	fmt.Println("ready")
	r, err := sink(f, at, size, sinkSilent)
	if err != nil {
		return err
	}
	return say(r)
}

func insideBlast(addr, size, duration, pps string) error {
	n, err := payload(size)
	d, e := time.ParseDuration(duration)
	rate, e2 := strconv.ParseUint(pps, 10, 32)
	if err = errors.Join(err, e, e2); err != nil {
		return err
	}
	s, err := blast(addr, n, d, float64(rate))
	if err != nil {
		return err
	}
	return say(s)
}

// payload reads the size of a packet's payload, which has to hold a number.
func payload(size string) (int, error) {
	n, err := strconv.Atoi(size)
	if err == nil && (n < numberSize || n > 65507) {
		err = fmt.Errorf("payload of %d bytes: allowed are %d to 65507", n, numberSize)
	}
	return n, err
}

func say(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// blocking returns the connection as a file whose reads and writes wait in the system
// call: the runtime's poller would add its own time to each.
func blocking(c net.Conn) (*os.File, error) {
	defer c.Close()
	s, ok := c.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errors.New("no socket")
	}
	f, err := s.File()
	if err == nil {
		f.Fd() // makes it a blocking one
	}
	return f, err
}
