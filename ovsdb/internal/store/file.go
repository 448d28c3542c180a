package store

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxRecord is how long a record of a file may be.
const maxRecord = 1 << 30

// A file keeps a database: a schema, and then a record for each transaction. It is written anew when it has grown.
type file struct {
	path  string
	f     *os.File
	lock  *os.File
	size  int64 // of what is there
	small int64 // when it was written anew
	torn  bool  // something is behind size that is to go
}

// Open returns the database that a file has, and makes the file if there is none. torn is how many bytes at the end of the file were of
// a record that was not written whole; they are gone. On Linux the file is locked as ovsdb-server and ovsdb-tool do it: it is an error that
// another program uses it.
func Open(path string, s *Schema, l Limits) (db *Database, torn int64, err error) {
	db = New(s, l)
	db.file = &file{path: path}
	if db.file.lock, err = lock(lockPath(path)); err == nil {
		torn, err = db.open()
	}
	if err != nil {
		db.Close()
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	return db, torn, nil
}

// lockPath returns the file that is locked in place of another.
func lockPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".~lock~")
}

// open reads the file.
func (db *Database) open() (torn int64, err error) {
	f := db.file
	f.f, err = os.OpenFile(f.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, db.rewrite()
	}
	if err != nil {
		return 0, err
	}
	if f.size, err = db.load(f.f); err != nil {
		return 0, err
	}
	f.small = f.size
	end, err := f.f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.cut()
	}
	return end - f.size, err
}

// Close closes the file.
func (db *Database) Close() error {
	if db.file == nil {
		return nil
	}
	defer db.file.lock.Close()
	return db.file.f.Close()
}

// load reads records, and returns where the last whole one ends.
func (db *Database) load(f io.Reader) (size int64, err error) {
	r := bufio.NewReader(f)
	first, n, err := record(r)
	if err != nil {
		return 0, fmt.Errorf("no schema: %w", err)
	}
	var s struct{ Name string }
	if err := json.Unmarshal(first, &s); err != nil || s.Name != db.Schema.Name {
		return 0, fmt.Errorf("a database with the schema %q, not %q", s.Name, db.Schema.Name)
	}
	for size += n; ; size += n {
		var text []byte
		if text, n, err = record(r); err != nil {
			break // the end, or a record that was not written whole
		}
		changes, err := db.read(text)
		if err != nil {
			return 0, fmt.Errorf("the record at %d: %w", size, err)
		}
		db.put(changes)
	}
	return size, db.settle()
}

// settle takes out what nothing refers to, such as what ephemeral columns referred to, and checks that nothing is missing.
func (db *Database) settle() error {
	tx, missing := &txn{db: db, rows: map[*table]map[UUID]*change{}}, false
	for _, t := range db.order {
		for id, r := range t.rows {
			db.refer(t, r, func(_ *column, to *table, id UUID) { missing = missing || to.rows[id] == nil })
			if !t.root && t.refs[id] == 0 {
				tx.set(t, id, nil)
			}
		}
	}
	if missing {
		return errors.New("rows refer to missing ones")
	}
	if e := tx.references(); e != nil {
		return e
	}
	db.put(tx.changes())
	return nil
}

// record reads a record: a line with the length and hash of what follows.
func record(r *bufio.Reader) (text []byte, n int64, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, 0, err
	}
	var size int64
	var sum string
	if _, err := fmt.Sscanf(string(line), "OVSDB JSON %d %40s\n", &size, &sum); err != nil || size < 0 || size > maxRecord {
		return nil, 0, fmt.Errorf("%.60q is not the head of a record", line)
	}
	n = int64(len(line)) + size
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, size); err != nil {
		return nil, 0, err
	}
	if h := sha1.Sum(b.Bytes()); hex.EncodeToString(h[:]) != sum {
		return nil, 0, errors.New("a record with another hash")
	}
	return b.Bytes(), n, nil
}

func frame(text []byte) []byte {
	text = append(text, '\n')
	h := sha1.Sum(text)
	return append(fmt.Appendf(nil, "OVSDB JSON %d %x\n", len(text), h), text...)
}

// read returns the changes of a record.
func (db *Database) read(text []byte) (changes []Change, err error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	isDiff := string(in["_is_diff"]) == "true"
	p := &parser{names: map[string]*symbol{}}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if name[:min(1, len(name))] == "_" {
			continue
		}
		t := db.tables[name]
		if t == nil {
			return nil, fmt.Errorf("no table %q", name)
		}
		var rows map[string]map[string]json.RawMessage
		if err := json.Unmarshal(in[name], &rows); err != nil {
			return nil, err
		}
		for id, cols := range rows {
			c := Change{table: t}
			u, ok := parseUUID(id)
			if c.old = t.rows[u]; !ok {
				return nil, fmt.Errorf("no UUID: %.60q", id)
			}
			if cols == nil {
				if c.old == nil {
					return nil, fmt.Errorf("no row %v of %s", u, name)
				}
				changes = append(changes, c)
				continue
			}
			if c.new, err = p.stored(t, u, c.old, cols, isDiff); err != nil {
				return nil, err
			}
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// stored returns a row with columns of a record.
func (p *parser) stored(t *table, id UUID, old *Row, cols map[string]json.RawMessage, isDiff bool) (*Row, error) {
	r := &Row{id: id, version: newUUID(), cols: make([]Datum, len(t.columns))}
	for _, c := range t.columns {
		if r.cols[c.index] = c.kind.zero(); old != nil {
			r.cols[c.index] = old.cols[c.index]
		}
	}
	for name, text := range cols {
		c := t.byName[name]
		if c == nil || c.index < 0 {
			return nil, fmt.Errorf("no column %q of %s", name, t.name)
		}
		v, err := decode(text)
		if err != nil {
			return nil, err
		}
		k := c.kind
		if isDiff && old != nil && k.max > 1 {
			k.min = 0
		}
		d, e := p.datum(&k, v)
		if e != nil {
			return nil, e
		}
		if isDiff && old != nil && k.max > 1 {
			d = diff(old.cols[c.index], d)
		}
		r.cols[c.index] = d
	}
	r.measure()
	return r, nil
}

// write appends a record of changes to the file, if there are any.
func (db *Database) write(changes []Change, durable bool) *Error {
	if db.file == nil {
		return nil
	}
	var b []byte
	if text := appendRecord(changes); text != nil {
		b = frame(text)
	}
	if err := db.file.append(b, durable); err != nil {
		return fail(ioError, "%v", err)
	}
	return nil
}

// append writes a record, and has it on disk if it is to be durable. After an error the record is not there, nor will be: if that cannot
// be had now, nothing is written before it is.
func (f *file) append(b []byte, durable bool) (err error) {
	if f.torn {
		if err := f.cut(); err != nil {
			return err
		}
	}
	_, err = f.f.Write(b)
	if err == nil && durable {
		err = f.f.Sync()
	}
	if err != nil {
		f.cut()
		return err
	}
	f.size += int64(len(b))
	return nil
}

// cut takes what is behind the records out of the file.
func (f *file) cut() error {
	err := f.f.Truncate(f.size)
	if err == nil {
		_, err = f.f.Seek(f.size, io.SeekStart)
	}
	f.torn = err != nil
	return err
}

// appendRecord returns a record of changes, nil if nothing of them is kept. Changes of a table follow each other.
func appendRecord(changes []Change) (b []byte) {
	var t *table
	for _, c := range changes {
		var kept []*column
		if c.new != nil {
			for _, col := range c.table.columns {
				d := c.new.cols[col.index]
				was := col.kind.zero()
				if c.old != nil {
					was = c.old.cols[col.index]
				}
				if !col.ephemeral && !d.equal(was) {
					kept = append(kept, col)
				}
			}
			if c.old != nil && len(kept) == 0 {
				continue
			}
		}
		switch {
		case t == nil:
			b = fmt.Appendf(b, `{"%s":{`, c.table.name)
		case t != c.table:
			b = fmt.Appendf(b, `},"%s":{`, c.table.name)
		default:
			b = append(b, ',')
		}
		t = c.table
		b = fmt.Appendf(b, `"%v":`, c.id())
		if c.new == nil {
			b = append(b, "null"...)
			continue
		}
		b = c.new.appendColumns(b, kept)
	}
	if t == nil {
		return nil
	}
	return fmt.Appendf(b, `},"_date":%d}`, time.Now().UnixMilli())
}

// compact writes the file anew if it has grown much. If that fails, the old one stays.
func (db *Database) compact() {
	if f := db.file; f != nil && f.size > 4*f.small+1<<20 {
		db.rewrite() // if the old one stays, later again
	}
}

// rewrite replaces the file by one of the rows that there are: at any moment, there is the old one or the new one.
func (db *Database) rewrite() error {
	f := db.file
	next, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(db.snapshot(next), next.Close())
	if err == nil {
		if f.f != nil {
			f.f.Close() // Windows replaces no open file
		}
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil {
		os.Remove(next.Name())
	} else if dir, err := os.Open(filepath.Dir(f.path)); err == nil {
		dir.Sync() // not with every system
		dir.Close()
	}
	return errors.Join(err, f.reopen())
}

// reopen opens the file at its end.
func (f *file) reopen() (err error) {
	if f.f, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return err
	}
	f.size, err = f.f.Seek(0, io.SeekEnd)
	f.small, f.torn = f.size, false
	return err
}

func (db *Database) snapshot(w *os.File) error {
	var text bytes.Buffer
	if err := json.Compact(&text, db.Schema.Text); err != nil {
		return err
	}
	if _, err := w.Write(frame(text.Bytes())); err != nil {
		return err
	}
	var all []Change
	for _, t := range db.order {
		for _, r := range t.rows {
			all = append(all, Change{table: t, new: r})
		}
	}
	if b := appendRecord(all); b != nil {
		if _, err := w.Write(frame(b)); err != nil {
			return err
		}
	}
	return w.Sync()
}
