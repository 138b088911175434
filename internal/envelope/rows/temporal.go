package rows

import (
	"errors"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
)

var (
	errNotTimestamp = errors.New(`not a timestamp of RFC 3339 ("2026-03-29T02:30:00Z")`)
	errNotDate      = errors.New(`not a date ("2026-03-29")`)
	errNotTime      = errors.New(`not a time of day ("02:30:00.5")`)
	errNeedsOffset  = errors.New("the column has a time zone, so the text needs an offset")
	errHasOffset    = errors.New("the column has no time zone, so the text may have no offset")
	errPrecision    = errors.New("finer than the column's unit, and nothing is rounded")
)

const secondsPerDay = 86_400

// unitsPerSecond of an Arrow time unit.
func unitsPerSecond(unit arrow.TimeUnit) int64 {
	switch unit {
	case arrow.Millisecond:
		return 1e3
	case arrow.Microsecond:
		return 1e6
	case arrow.Nanosecond:
		return 1e9
	}
	return 1
}

// parseTimestamp reads the text of RFC 3339, section 5.6, with a capital T and Z, into a count of unit since 1970.
// With zoned the text needs an offset and names an instant; otherwise it may have none and names a wall clock.
// Leap seconds have no place in Arrow's count and are refused.
func parseTimestamp(text []byte, unit arrow.TimeUnit, zoned bool) (int64, error) {
	if len(text) < len("2026-03-29T02:30:00") || text[10] != 'T' {
		return 0, errNotTimestamp
	}
	days, err := parseDate(text[:10])
	if err != nil {
		return 0, errNotTimestamp
	}
	seconds, ok := parseClock(text[11:19])
	if !ok {
		return 0, errNotTimestamp
	}
	fraction, rest, err := parseFraction(text[19:], unitsPerSecond(unit))
	if err != nil {
		return 0, err
	}
	offset, hasOffset, ok := parseOffset(rest)
	switch {
	case !ok:
		return 0, errNotTimestamp
	case zoned && !hasOffset:
		return 0, errNeedsOffset
	case !zoned && hasOffset:
		return 0, errHasOffset
	}
	return scaleSeconds(int64(days)*secondsPerDay+seconds-offset, fraction, unitsPerSecond(unit))
}

func scaleSeconds(seconds, fraction, perSecond int64) (int64, error) {
	// The fraction counts upwards, so a second just below the smallest count may still be reached with it.
	if seconds > math.MaxInt64/perSecond || seconds < math.MinInt64/perSecond-1 {
		return 0, errRange
	}
	if seconds < 0 {
		seconds, fraction = seconds+1, fraction-perSecond
	}
	scaled := seconds * perSecond
	if fraction > 0 && scaled > math.MaxInt64-fraction || fraction < 0 && scaled < math.MinInt64-fraction {
		return 0, errRange
	}
	return scaled + fraction, nil
}

// parseClock reads "hh:mm:ss" into seconds since midnight.
func parseClock(text []byte) (int64, bool) {
	if text[2] != ':' || text[5] != ':' {
		return 0, false
	}
	h, okH := twoDigits(text)
	m, okM := twoDigits(text[3:])
	s, okS := twoDigits(text[6:])
	return h*3600 + m*60 + s, okH && okM && okS && h < 24 && m < 60 && s < 60
}

// parseFraction reads an optional ".digits" into a count of 1/perSecond and returns the text behind it. Zeros beyond
// the unit are harmless, other digits would be lost.
func parseFraction(text []byte, perSecond int64) (count int64, rest []byte, err error) {
	if len(text) == 0 || text[0] != '.' {
		return 0, text, nil
	}
	weight, i := perSecond, 1
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		weight /= 10
		if weight == 0 && text[i] != '0' {
			return 0, nil, errPrecision
		}
		count += weight * int64(text[i]-'0')
	}
	if i == 1 {
		return 0, nil, errNotTimestamp
	}
	return count, text[i:], nil
}

// parseOffset reads "", "Z" or "±hh:mm" into seconds east of UTC.
func parseOffset(text []byte) (seconds int64, present, ok bool) {
	if len(text) == 0 {
		return 0, false, true
	}
	if len(text) == 1 && text[0] == 'Z' {
		return 0, true, true
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' {
		return 0, false, false
	}
	h, okH := twoDigits(text[1:])
	m, okM := twoDigits(text[4:])
	seconds = h*3600 + m*60
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true, okH && okM && h < 24 && m < 60
}

// parseDate reads "YYYY-MM-DD" of the proleptic Gregorian calendar into days since 1970.
func parseDate(text []byte) (int32, error) {
	if len(text) != 10 || text[4] != '-' || text[7] != '-' {
		return 0, errNotDate
	}
	century, okC := twoDigits(text)
	year, okY := twoDigits(text[2:])
	month, okM := twoDigits(text[5:])
	day, okD := twoDigits(text[8:])
	year += century * 100
	if !okC || !okY || !okM || !okD || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, errNotDate
	}
	return int32(daysSinceEpoch(year, month, day)), nil
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSinceEpoch counts in years that begin in March, so that the leap day is a year's last; years of the input are
// 0 to 9999. 719468 is the count from 1 March of year 0 to 1 January 1970.
func daysSinceEpoch(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	year += 400 // one Gregorian cycle, so that no division below sees a negative year
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return year*365 + year/4 - year/100 + year/400 + dayOfYear - 719_468 - 146_097
}

// parseTimeOfDay reads "hh:mm:ss[.fraction]" into a count of unit since midnight.
func parseTimeOfDay(text []byte, unit arrow.TimeUnit) (int64, error) {
	if len(text) < len("02:30:00") {
		return 0, errNotTime
	}
	seconds, ok := parseClock(text[:8])
	if !ok {
		return 0, errNotTime
	}
	fraction, rest, err := parseFraction(text[8:], unitsPerSecond(unit))
	if errors.Is(err, errPrecision) {
		return 0, err
	}
	if err != nil || len(rest) > 0 {
		return 0, errNotTime
	}
	return seconds*unitsPerSecond(unit) + fraction, nil
}

func twoDigits(text []byte) (int64, bool) {
	a, b := text[0]-'0', text[1]-'0'
	return int64(a)*10 + int64(b), a <= 9 && b <= 9
}
