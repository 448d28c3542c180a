package bgp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Message types (RFC 4271, section 4.1; RFC 2918).
const (
	typeOpen         = 1
	typeUpdate       = 2
	typeNotification = 3
	typeKeepalive    = 4
	typeRefresh      = 5
)

const (
	headerLen   = 19
	maxMessage  = 4096  // bytes, header included
	maxExtended = 65535 // likewise, when both sides have said capability 6 (RFC 8654)
)

// Error codes and some subcodes (RFC 4271, section 4.5; RFC 4486).
const (
	errHeader = 1
	errOpen   = 2
	errUpdate = 3
	errHold   = 4
	errFSM    = 5
	errCease  = 6

	ceaseRoutes    = 1
	ceaseShutdown  = 2
	ceaseRemoved   = 3
	ceaseCollision = 7
	ceaseBFD       = 10 // RFC 9384
)

var errorNames = [...]string{errHeader: "message header error", errOpen: "OPEN error", errUpdate: "UPDATE error",
	errHold: "hold timer expired", errFSM: "message unexpected in this state", errCease: "cease"}

// subcodeNames are of those that operators see (RFC 4271, RFC 4486, RFC 8538, RFC 9384).
var subcodeNames = map[[2]uint8]string{
	{errOpen, 2}: "wrong AS", {errOpen, 3}: "bad identifier", {errOpen, 6}: "hold time not accepted", {errOpen, 7}: "EVPN not supported",
	{errCease, ceaseRoutes}: "too many routes", {errCease, ceaseShutdown}: "shut down", {errCease, ceaseRemoved}: "peer removed", {errCease, 4}: "reset",
	{errCease, 5}: "connection rejected", {errCease, 6}: "configuration changed", {errCease, ceaseCollision}: "two connections",
	{errCease, 8}: "out of resources", {errCease, 9}: "hard reset", {errCease, ceaseBFD}: "BFD down",
}

// Notification is a NOTIFICATION message, and an error: ours ends the session and is sent, the peer's has ended it.
type Notification struct {
	Code, Subcode uint8
	Data          []byte
	Received      bool // the peer sent it

	Why string // of ours, not sent
}

// Text returns what an operator wrote for a shutdown or reset (RFC 9003), without control characters.
func (n *Notification) Text() string {
	if n.Code != errCease || n.Subcode != ceaseShutdown && n.Subcode != 4 || len(n.Data) == 0 {
		return ""
	}
	b := n.Data[1:]
	if len(b) < int(n.Data[0]) || !utf8.Valid(b[:n.Data[0]]) {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(b[:n.Data[0]]))
}

func (n *Notification) Error() string {
	who, name := "sent", "unknown"
	if n.Received {
		who = "received"
	}
	if int(n.Code) < len(errorNames) && n.Code > 0 {
		name = errorNames[n.Code]
	}
	s := fmt.Sprintf("%s notification %d/%d, %s", who, n.Code, n.Subcode, name)
	if sub := subcodeNames[[2]uint8{n.Code, n.Subcode}]; sub != "" {
		s += ", " + sub
	}
	if n.Why != "" {
		s += ": " + n.Why
	}
	if t := n.Text(); t != "" {
		s += fmt.Sprintf(": %q", t)
	}
	return s
}

func notify(code, subcode uint8, data ...byte) *Notification {
	return &Notification{Code: code, Subcode: subcode, Data: data}
}

var marker = bytes.Repeat([]byte{0xff}, 16)

// appendHeader begins a message; finish it with setLength.
func appendHeader(b []byte, typ uint8) []byte {
	b = append(b, marker...)
	return append(b, 0, 0, typ)
}

// setLength writes the length of the message that begins at b.
func setLength(b []byte) []byte {
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)))
	return b
}

func appendKeepalive(b []byte) []byte {
	at := len(b)
	b = appendHeader(b, typeKeepalive)
	setLength(b[at:])
	return b
}

func (n *Notification) marshal() []byte {
	return setLength(append(append(appendHeader(nil, typeNotification), n.Code, n.Subcode), n.Data...))
}

func refreshMessage() []byte {
	return setLength(append(appendHeader(nil, typeRefresh), 0, afi, 0, safi))
}

// readMessage reads one message of at most limit bytes into buf, which has room for it, and returns its type and body.
func readMessage(r io.Reader, buf []byte, limit int) (typ uint8, body []byte, err error) {
	h := buf[:headerLen]
	if _, err := io.ReadFull(r, h); err != nil {
		return 0, nil, err
	}
	if !bytes.Equal(h[:16], marker) {
		return 0, nil, notify(errHeader, 1)
	}
	n, typ := int(binary.BigEndian.Uint16(h[16:])), h[18]
	least := headerLen
	switch typ {
	case typeOpen:
		least += 10
		limit = maxMessage // extended or not (RFC 8654, section 4)
	case typeUpdate:
		least += 4
	case typeNotification:
		least += 2
	case typeKeepalive:
		limit = headerLen
	case typeRefresh:
		least += 4
	default:
		return 0, nil, notify(errHeader, 3, typ)
	}
	if n < least || n > limit {
		return 0, nil, notify(errHeader, 2, h[16], h[17])
	}
	body = buf[headerLen:n]
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	return typ, body, nil
}

func parseNotification(body []byte) *Notification {
	return &Notification{Code: body[0], Subcode: body[1], Data: bytes.Clone(body[2:]), Received: true}
}
