package envelope

import (
	"fmt"
	"strconv"
	"strings"
)

// DefaultPrefix is the first token of every subject unless a deployment sets another.
const DefaultPrefix = "foldline"

// Subjects names the subjects of one graph: "<prefix>.<graph>.…". Make it with NewSubjects.
type Subjects struct{ base string }

// NewSubjects checks the two names and returns the graph's subjects. An empty prefix is DefaultPrefix. A prefix
// may have several tokens ("prod.foldline"), a graph is one token; tokens are letters, digits, '_' and '-'.
func NewSubjects(prefix, graph string) (Subjects, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	for _, token := range strings.Split(prefix, ".") {
		if !validToken(token) {
			return Subjects{}, fmt.Errorf("envelope: subject prefix %q: tokens are letters, digits, '_' and '-'", prefix)
		}
	}
	if !validToken(graph) {
		return Subjects{}, fmt.Errorf("envelope: graph name %q: letters, digits, '_' and '-' only", graph)
	}
	return Subjects{base: prefix + "." + graph}, nil
}

// Write takes messages whose lines name their table.
func (s Subjects) Write() string { return s.base + ".write" }

// WriteTable takes rows of one table.
func (s Subjects) WriteTable(table string) string { return s.base + ".write." + table }

// WriteTables is the wildcard over every WriteTable. A table key is one token, so one level suffices.
func (s Subjects) WriteTables() string { return s.base + ".write.*" }

// LaneWrite is Write for the owner of one lane.
func (s Subjects) LaneWrite(lane uint32) string { return s.lane(lane) + ".write" }

// LaneWriteTable is WriteTable for the owner of one lane.
func (s Subjects) LaneWriteTable(lane uint32, table string) string {
	return s.lane(lane) + ".write." + table
}

// LaneWriteTables is WriteTables for the owner of one lane.
func (s Subjects) LaneWriteTables(lane uint32) string { return s.lane(lane) + ".write.*" }

// LaneRead is where the owner of a lane serves its log.
func (s Subjects) LaneRead(lane uint32) string { return s.lane(lane) + ".read" }

// LaneStatus is where the owner of a lane tells the state of its log.
func (s Subjects) LaneStatus(lane uint32) string { return s.lane(lane) + ".status" }

// Published carries an Event after each publish.
func (s Subjects) Published() string { return s.base + ".published" }

// Admin is the subject of one administrative verb.
func (s Subjects) Admin(verb string) string { return s.base + ".admin." + verb }

// WriteQueue is the queue group that the owners of all lanes share on Write and WriteTables.
func (s Subjects) WriteQueue() string { return s.base + ".ingest" }

func (s Subjects) lane(n uint32) string { return s.base + ".lane." + strconv.FormatUint(uint64(n), 10) }

// TableOf returns the table key that the subject of a write request names, "" when it names none.
// ok is false when the subject is no write subject of this graph or the key is not valid.
func (s Subjects) TableOf(subject string) (table string, ok bool) {
	rest, found := strings.CutPrefix(subject, s.base+".")
	if !found {
		return "", false
	}
	if lane, isLane := strings.CutPrefix(rest, "lane."); isLane {
		_, rest, found = strings.Cut(lane, ".")
		if !found {
			return "", false
		}
	}
	if rest == "write" {
		return "", true
	}
	table, found = strings.CutPrefix(rest, "write.")
	return table, found && ValidTableKey(table)
}

// ValidTableKey tells whether a key may name a table on the wire: letters, digits, '_', '-' and at most one ':',
// at most MaxTableKeyBytes, and no empty part.
func ValidTableKey(key string) bool {
	if len(key) > MaxTableKeyBytes {
		return false
	}
	kind, name, two := strings.Cut(key, ":")
	return validToken(kind) && (!two || validToken(name))
}

func validToken(token string) bool {
	if token == "" {
		return false
	}
	for i := range len(token) {
		c := token[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
