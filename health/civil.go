package health

import "github.com/tieredmem/mem/tiers"

func civil(day string) int32 { return tiers.DayNumber(day) }
