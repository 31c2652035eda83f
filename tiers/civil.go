package tiers

// DayNumber is a calendar day, YYYY-MM-DD, as days since 1970-01-01. Ages are
// differences of such numbers, so that neither DST nor a day without a
// midnight matters. The day must be valid. (Days-from-civil: Howard Hinnant,
// "chrono-Compatible Low-Level Date Algorithms".)
func DayNumber(day string) int32 {
	y := int32(digits(day[:4]))
	m, d := int32(digits(day[5:7])), int32(digits(day[8:10]))
	if m <= 2 {
		y--
	}
	era := y / 400
	yoe := y - era*400
	doy := (153*(m+(map[bool]int32{true: -3, false: 9})[m > 2])+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func digits(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
