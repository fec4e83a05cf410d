-- A database in memory: tables, an index, joins, windows, JSON. @SIZE@ is the number of rows.
pragma temp_store=memory;
create table item(id integer primary key, name text, price real, bin integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < @SIZE@)
insert into item
select i, printf('%08d-%s', (i * 7919) % 100003, substr('abcdefghijklmnopqrstuvwxyz', 1, i % 26)), i * 0.5, i % 1000
from n;
create index by_name on item(name);
create table bin as select bin, group_concat(name, ',') as names, max(price) as price from item group by bin;
select count(*), sum(length(names)), sum(price) from bin;
select count(*), sum(length(bin.names)) from item join bin using (bin) where item.name like '0001%';
update item set name = name || 'x' where id % 7 = 0;
delete from item where id % 3 = 0;
select sum(l), sum(s) from (select length(name) as l, sum(price) over (partition by bin order by id rows 5 preceding) as s from item);
select sum(length(j)) from (select json_group_array(json_object('id', id, 'name', name)) as j from item group by bin);
select count(*) from bin, json_each('["' || replace(bin.names, ',', '","') || '"]');
pragma integrity_check;
