# Hashes of strings, lists of records, sorting, patterns. Argument: rounds.
use strict;
use warnings;

my $sum = 0;
for my $round (1 .. $ARGV[0]) {
    my (%text, %count, @rows);
    my $seed = $round;
    for my $i (1 .. 40000) {
        $seed = ($seed * 1103515245 + 12345) % 2147483648;
        $text{"key" . $seed % 9000} .= chr(97 + $i % 26);
    }
    for my $key (sort keys %text) { delete $text{$key} if length($text{$key}) % 3 == 0 }
    push @{$rows[$_ % 300]}, { number => $_, list => [1 .. $_ % 9] } for 1 .. 15000;
    for my $row (@rows) { $sum += $_->{number} * @{$_->{list}} for @$row }
    my $line = join " ", map { $text{$_} } sort keys %text;
    $count{$1}++ while $line =~ /\b([a-m]+)/g;
    $sum += $count{$_} * length $_ for sort { $count{$a} <=> $count{$b} || $a cmp $b } keys %count;
}
print "$sum\n";
