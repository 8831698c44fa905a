// Bench of vt020_vending_machine: vending machine with change.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_vend;
    int errortime_vend;
    int errors_change;
    int errortime_change;
    int errors_credit;
    int errortime_credit;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic [1:0] coin;
  logic       cancel;
  wire        vend_ref;
  wire        vend_dut;
  wire  [3:0] change_ref;
  wire  [3:0] change_dut;
  wire  [3:0] credit_ref;
  wire  [3:0] credit_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .coin(coin),
    .cancel(cancel),
    .vend(vend_ref),
    .change(change_ref),
    .credit(credit_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .coin(coin),
    .cancel(cancel),
    .vend(vend_dut),
    .change(change_dut),
    .credit(credit_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_vend = vend_ref ^ vend_ref;
  wire        match_vend = (vend_dut ^ open_vend) === (vend_ref ^ open_vend);
  wire  [3:0] open_change = change_ref ^ change_ref;
  wire        match_change = (change_dut ^ open_change) === (change_ref ^ open_change);
  wire  [3:0] open_credit = credit_ref ^ credit_ref;
  wire        match_credit = (credit_dut ^ open_credit) === (credit_ref ^ open_credit);
  wire        tb_match = match_vend && match_change && match_credit;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_vend) begin
      if (stats1.errors_vend == 0) stats1.errortime_vend = $time;
      stats1.errors_vend = stats1.errors_vend + 1;
    end
    if (!match_change) begin
      if (stats1.errors_change == 0) stats1.errortime_change = $time;
      stats1.errors_change = stats1.errors_change + 1;
    end
    if (!match_credit) begin
      if (stats1.errors_credit == 0) stats1.errortime_credit = $time;
      stats1.errors_credit = stats1.errors_credit + 1;
    end
  end

  integer i;
  integer j;
  // Puts in one coin, then waits.
  task insert(input [1:0] what, input integer pause);
    begin
      coin <= what;
      @(posedge clk) coin <= 2'd0;
      repeat (pause) @(posedge clk);
    end
  endtask

  initial begin
    reset <= 1'b1;
    coin <= 2'd3;
    cancel <= 1'b0;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    coin <= 2'd0;
    @(posedge clk);
    // From every credit below the price, every coin with and without cancel.
    for (i = 0; i < 6; i = i + 1)
      for (j = 0; j < 8; j = j + 1) begin
        repeat (i) insert(2'd1, 0);
        cancel <= j[2];
        insert(j[1:0], 0);
        cancel <= 1'b0;
        @(posedge clk) cancel <= 1'b1;
        @(posedge clk) cancel <= 1'b0;
      end
    repeat (350) @(posedge clk) begin
      coin <= ($urandom & 3) == 0 ? 2'd0 : $random;
      cancel <= ($random & 15) == 0;
      reset <= ($urandom & 63) == 0;
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_vend != 0)
      $display("Hint: Output 'vend' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_vend, stats1.errortime_vend);
    else
      $display("Hint: Output 'vend' has no mismatches.");
    if (stats1.errors_change != 0)
      $display("Hint: Output 'change' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_change, stats1.errortime_change);
    else
      $display("Hint: Output 'change' has no mismatches.");
    if (stats1.errors_credit != 0)
      $display("Hint: Output 'credit' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_credit, stats1.errortime_credit);
    else
      $display("Hint: Output 'credit' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
